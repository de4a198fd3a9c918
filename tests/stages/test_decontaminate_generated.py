"""A model that has learned an evaluation set writes it down: such a text is rejected, and its source stays."""

import json
from pathlib import Path

from pipeline_tasks.cards import stage_card
from pipeline_tasks.stages.decontaminate import Params
from tests.refining import refined, rows
from tests.stages.test_scrub_generated import ITEM, unfolded


def test_generated_texts_with_items_are_rejected(tmp_path: Path) -> None:
    benchmark = tmp_path / "items.jsonl"
    benchmark.write_text(json.dumps({"question": ITEM}) + "\n")
    parent = unfolded(tmp_path, texts=[f"Question: {ITEM}", "The harbor is closed."], source=f"A page: {ITEM}.")
    params = {"benchmarks": {"b": str(benchmark)}}
    _, manifest = refined(tmp_path, "decontaminate_generated", parent, params)
    assert manifest.rejected == {"decontaminate_generated:contaminated": 1}
    [row] = rows(tmp_path, manifest, "rejects").to_pylist()
    assert (row["origin"], row["contaminated_by"]) == ("generated", "b")
    kept = rows(tmp_path, manifest).to_pylist()
    assert [row["contaminated_by"] for row in kept] == [None] * 3, "sources were judged before"
    _, cut = refined(tmp_path, "decontaminate_generated", parent, {**params, "action": "cut"})
    assert [ITEM in row["text"] for row in rows(tmp_path, cut).to_pylist()] == [True, False, False, False]


def test_its_bounds_have_its_reasons() -> None:
    card = stage_card("decontaminate_generated")
    assert card.bounds is not None
    assert (
        {bound.reason for bound in card.bounds(Params())}
        == set(card.reasons)
        == {"decontaminate_generated:contaminated"}
    )
