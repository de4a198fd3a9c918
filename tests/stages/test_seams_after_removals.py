"""Every stage that takes stretches out of texts takes the lead-in before them, too; the stages are found by what they do."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute

from tests import every_stage
from tests.every_stage import Step

pc: Any = pyarrow.compute

ITEM = "which of the two millers of the upper lake counted his eels twice before the thaw came"
GERMAN = (
    "Die Mühle steht am Fluss, und sie mahlt das ganze Jahr über das Korn von drei Dörfern und vier Höfen im Tal. "
    "Der Müller hat ein Boot, einen Hund und zwei Söhne, die das Meer sehen wollen und die großen Schiffe im Hafen. "
    "Im Winter friert der Fluss zu, und dann schläft die Mühle, bis im März das Eis bricht und das Wasser steigt."
)
SHARED = "The lake has two millers, and each of them says that the other one counts his eels by night. " * 3
ENGLISH = (
    "The mill number {} stands by the river, and it grinds the corn of three villages all the year. "
    "The miller of it has a boat, a dog and {} sons, who want to see the sea and the ships one day."
)
LEAD_IN = "This is what {} of them wrote in the book:"
REMOVED = [GERMAN.strip(), "Please enable javascript in your browser to read on.", SHARED.strip(), SHARED.strip(), ITEM]
"""What `filter_language`, `filter_quality`, `dedup_paragraphs` and `decontaminate` take out; `cut_templates` the rest."""


def texts() -> list[str]:
    gone = [*REMOVED, *["Part of the book of mills"] * 6]
    return [
        "\n\n".join([ENGLISH.format(at, at + 20), ENGLISH.format(at + 50, at), LEAD_IN.format(at + 2), part])
        for at, part in enumerate(gone)
    ]


def removals(steps: Iterator[Step], root: Path, landing: str) -> dict[str, list[tuple[str, str]]]:
    """Return the texts of pages before and after each stage that left a part of them, and nothing that is new."""
    found: dict[str, list[tuple[str, str]]] = {}
    before: dict[str, str] = {}
    for step in steps:
        if step.stage == "tokenize":
            break
        rows = every_stage.all_rows(root, step.done.manifest, landing)
        if "text" not in rows.schema.names:
            continue
        pages = rows.filter(pc.is_null(rows["parent"])) if "parent" in rows.schema.names else rows
        after = {row["url"]: row["text"] or "" for row in pages.select(["url", "text"]).to_pylist()}
        pairs = [(before[url], text) for url, text in after.items() if url in before and text != before[url]]
        if step.stage not in ("ingest", "extract") and any(set(text.split()) < set(old.split()) for old, text in pairs):
            found[step.stage] = pairs
        before = after
    return found


def test_no_stage_leaves_the_lead_in_of_what_it_removes(tmp_path: Path) -> None:
    given: dict[str, Mapping[str, Any]] = {**every_stage.params(tmp_path)}
    given["filter_language"] = {**given["filter_language"], "keep": ["en"]}
    given["decontaminate"] = {**given["decontaminate"], "action": "cut"}
    given["filter_quality"] = {"profiles": ["c4"], "edit": True, "c4": {"min_words_per_line": 0}}
    landing = str(tmp_path / "landing")
    parent = every_stage.land(tmp_path / "root", Path(landing), texts())
    found = removals(every_stage.chain(tmp_path / "root", parent, landing, given), tmp_path / "root", landing)
    removers = {"filter_language", "filter_quality", "cut_templates", "dedup_paragraphs", "decontaminate"}
    assert removers <= {*found}
    for stage, pairs in found.items():
        cut = [(old, text) for old, text in pairs if ":\n\n" in old and len(text) < len(old)]
        assert cut, f"{stage} removes text: plant some behind a lead-in here"
        for _, text in cut:
            assert not text.endswith(":"), f"{stage} leaves a lead-in behind; see `text.edits.seams.with_cut`"
