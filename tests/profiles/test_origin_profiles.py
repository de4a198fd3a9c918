"""Origins of documents are counted wherever rows have one; a generated document is no file of any type."""

from dataclasses import replace

import pyarrow as pa

from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.profiles.file_types import OfType, rows_by_type
from pipeline_tasks.profiles.origins import generated_kept, generated_removed, sources_removed
from tests.gate.samples import healthy

KEPT = pa.table({"origin": ["source", "generated", "generated", None], "type": ["pdf", "pdf", None, None]})
REJECTED = pa.table(
    {
        "origin": ["source", "generated", "generated", "generated"],
        "type": ["pdf", None, None, None],
        "reason": ["toy:why", "toy:why", "toy:why", "error:toy"],
    }
)

MANIFEST = replace(
    healthy("extract", 8),
    rejected={"toy:why": 3},
    quarantined={"error:toy": 1},
    metrics={"kept": profile(KEPT, ["origin"]), "rejects": profile(REJECTED, ["origin"])},
)


def test_rows_are_counted_by_origin_and_rejected_ones_by_reason() -> None:
    assert generated_kept(MANIFEST) == 2
    assert generated_removed(MANIFEST) == {"toy:why": 2, "error:toy": 1}
    assert sources_removed(MANIFEST) == {"toy:why": 1}
    assert MANIFEST.metrics["kept"]["origin"] == {"kind": "name", "count": 3, "bins": {"generated": 2, "source": 1}}


def test_rows_without_an_origin_have_no_profile_of_it() -> None:
    assert "origin" not in profile(pa.table({"type": ["pdf"]}), ["origin", "n_generated"])
    assert "n_generated" not in profile(pa.table({"type": ["pdf"]}), ["origin", "n_generated"])


def test_generated_documents_are_no_files() -> None:
    assert rows_by_type(MANIFEST) == {"pdf": OfType(1, {"toy:why": 1}), "": OfType(1, {})}
