"""Writes a snapshot's report from its sections."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline_tasks.manifest import NAMED
from pipeline_tasks.publish.published import PublishedFile, publish_file
from pipeline_tasks.report import by_type, numbers, records
from pipeline_tasks.report.contents import Contents
from pipeline_tasks.report.html import Html, page
from pipeline_tasks.sealed import sha256

Section = Callable[[Contents], Iterator[Html]]
"""Yields a section's HTML, nothing where the snapshot has no such rows or numbers."""

SECTIONS: tuple[Section, ...] = (
    numbers.opening,
    numbers.funnel,
    numbers.gates,
    numbers.reasons,
    by_type.types,
    numbers.coverage,
    numbers.distributions,
    numbers.before_and_after,
    numbers.tokens,
    records.near_duplicates,
    records.superseded,
    records.audit_of_survivors,
    numbers.personal_data,
    records.evaluation_sets,
    numbers.cost,
    records.quarantine,
    records.kept_documents,
    records.rejected_rows,
    numbers.manifests,
)
"""The sections in reading order."""


def write_report(contents: Contents) -> PublishedFile:
    """Store the report of a snapshot under `contents.out`, named by its content, and return it.

    Texts are shown only as they were after personal data was removed. Of rejected rows the report shows address,
    reason and evidence.
    """
    sections = [html for section in SECTIONS for html in section(contents)]
    with tempfile.NamedTemporaryFile(prefix="refinery-report-") as local:
        local.write(page(f"{contents.recipe} {contents.snapshot}", *sections))
        local.flush()
        digest = sha256(Path(local.name).read_bytes())
        path = f"{contents.out}/report-{digest[:NAMED]}.html"
        return publish_file(contents.root, path, Path(local.name), {})
