"""Writes a snapshot's report from its sections."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline_tasks.publish.report import numbers, records
from pipeline_tasks.publish.report.contents import Contents
from pipeline_tasks.publish.report.html import Html, page
from pipeline_tasks.store import storage

Section = Callable[[Contents], Iterator[Html]]
"""Yields a section's HTML, nothing where the snapshot has no such rows or numbers."""

SECTIONS: tuple[Section, ...] = (
    numbers.opening,
    numbers.funnel,
    numbers.gates,
    numbers.reasons,
    numbers.distributions,
    numbers.tokens,
    records.near_duplicates,
    records.superseded,
    numbers.personal_data,
    records.evaluation_sets,
    numbers.cost,
    records.quarantine,
    records.kept_documents,
    records.rejected_rows,
    numbers.manifests,
)
"""The sections in reading order."""


def write_report(contents: Contents) -> str:
    """Store the report of a snapshot at `contents.out`; return that path.

    Texts are shown only as they were after personal data was removed. Of rejected rows the report shows address,
    reason and evidence.
    """
    sections = [html for section in SECTIONS for html in section(contents)]
    with tempfile.NamedTemporaryFile(prefix="refinery-report-") as local:
        local.write(page(f"{contents.recipe} {contents.snapshot}", *sections))
        local.flush()
        storage.put_file(contents.root, contents.out, Path(local.name))
    return contents.out
