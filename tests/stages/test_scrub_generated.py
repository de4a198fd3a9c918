"""Personal data that a model wrote is removed, and that of sources stays as it was removed before."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_tasks.cards import adds, stage_card
from pipeline_tasks.schema import GENERATED
from tests.documents import documents
from tests.refining import commit_parent, refined, rows

ITEM = "which of the two millers of the upper lake counted his eels twice before the thaw came"


def unfolded(root: Path, *, texts: list[str], source: str = "Write to bob@firm.org about the harbor.") -> str:
    """Return the manifest of sources that `scrub_pii` and `decontaminate` have judged, with texts made of the first."""
    empty: dict[str, Any] = {field.name: None for field in GENERATED}
    written = [
        empty | {"prompt": str(at), "start": 0, "end": 9, "text": text, "stop": "stop"} for at, text in enumerate(texts)
    ]
    table = documents(
        [source, "The harbor is old."],
        language=pa.array(["en", "en"]),
        generated=pa.array([written, []], pa.list_(GENERATED)),
        n_generated=pa.array([len(texts), 0], pa.int64()),
    )
    path, _ = refined(root, "scrub_pii", commit_parent(root, [table]))
    path, _ = refined(root, "decontaminate", path)
    loose = {
        "names": 99,
        "figures": 99,
        "negations": 99,
        "leaks": 99,
        "longest": 99,
        "units": 99,
        "dates": 99,
        "invented": 99,
        "grounded": 0,
    }
    return refined(root, "filter_generated", path, loose)[0]


def test_generated_texts_are_scrubbed_and_sources_are_as_before(tmp_path: Path) -> None:
    parent = unfolded(tmp_path, texts=["Write to eve@firm.org or adam@firm.org.", "The harbor is closed."])
    _, manifest = refined(tmp_path, "scrub_generated", parent)
    found = [
        (row["origin"], row["text"], row["pii_email"], len(row["redactions"]), row["chars"] == len(row["text"]))
        for row in rows(tmp_path, manifest).to_pylist()
    ]
    assert found == [
        ("source", "Write to <EMAIL> about the harbor.", 1, 1, True),
        ("source", "The harbor is old.", 0, 0, True),
        ("generated", "Write to <EMAIL> or <EMAIL>.", 2, 2, True),
        ("generated", "The harbor is closed.", 0, 0, True),
    ]


def test_only_generated_documents_are_dropped(tmp_path: Path) -> None:
    parent = unfolded(tmp_path, texts=["Write to eve@firm.org.", "The harbor is closed."])
    _, manifest = refined(tmp_path, "scrub_generated", parent, {"action": "drop"})
    assert manifest.rejected == {"scrub_generated:pii": 1}
    assert [row["origin"] for row in rows(tmp_path, manifest, "rejects").to_pylist()] == ["generated"]


def test_rows_stay_in_order_whatever_is_between_them(tmp_path: Path) -> None:
    """Sources and generated documents may come in one batch: each is where it was."""
    parent = unfolded(tmp_path, texts=["Write to eve@firm.org.", "The harbor is closed."])
    _, manifest = refined(tmp_path, "scrub_generated", parent)
    whole = rows(tmp_path, manifest)
    mixed = whole.take(pa.array([2, 0, 3, 1]))
    for batch_rows in (1, 2, 4096):
        again = refined(tmp_path, "scrub_generated", commit_parent(tmp_path, [mixed]), batch_rows=batch_rows)[1]
        assert rows(tmp_path, again)["id"].to_pylist() == mixed["id"].to_pylist()
        assert rows(tmp_path, again)["text"].to_pylist() == mixed["text"].to_pylist()


def test_a_twin_says_of_whom_it_is_one() -> None:
    card = stage_card("scrub_generated")
    assert card.wiring.twin_of == "scrub_pii"
    assert not adds("pii_email", "scrub_generated")
    assert card.reasons == ("scrub_generated:pii",)
