"""A comparison is prepared and judged without torch: held-out documents, plans, refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
from refinery_ablate.arms import make_arms
from refinery_ablate.comparison import Wanted, judge, noise_of, prepare
from refinery_ablate.held_out import load_held_out, shared_with, stretch_hashes
from refinery_ablate.held_out_sets import read_items, scored_in
from refinery_ablate.job import HELD_OUT, unfinished
from refinery_ablate.statistics import BETTER
from refinery_ablate.verdict import lines_of, price_lines

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from tests.ablate import planted
from tests.ablated_root import recipe_file


def test_a_plan_has_both_arms_for_the_tokens_of_the_smaller_one(
    arms: tuple[str, str], sets: str, tmp_path: Path
) -> None:
    plan = prepare(Wanted(arms, (sets,)), tmp_path / "to")
    assert plan.tokens == min(arm.tokens for arm in plan.arms) > 0
    assert (plan.length, plan.eos, plan.vocabulary) == (64, 0, 320)
    assert len(unfinished(tmp_path / "to", plan)) == 2 * 2 * 3
    assert prepare(Wanted(arms, (sets,)), tmp_path / "to") == plan
    more = prepare(Wanted(arms, (sets,), seeds=4), tmp_path / "to")
    assert len(unfinished(tmp_path / "to", more)) == 2 * 2 * 4
    with pytest.raises(RecipeError, match="tokens"):
        prepare(Wanted(arms, (sets,), tokens=777), tmp_path / "to")


def test_held_out_documents_that_an_arm_has_are_left_out_and_counted(arms: tuple[str, str], tmp_path: Path) -> None:
    known, new = planted.texts(120, 1)[:30], planted.texts(40, 77)
    sets = planted.held_out(tmp_path, made=[*known, *new])
    prepare(Wanted(arms, (sets,)), tmp_path / "to")
    facts = json.loads((tmp_path / "to" / "shared.json").read_bytes())
    assert facts == {"documents": 70, "left": 40, "in": [30, 24]}  # a fifth of the second arm is in disorder
    assert len(load_held_out(tmp_path / "to" / HELD_OUT)) == 40
    with pytest.raises(RecipeError, match="0 of 30"):
        prepare(Wanted(arms, (planted.held_out(tmp_path, made=known),)), tmp_path / "none")


def test_a_stretch_is_found_wherever_it_is() -> None:
    tokens = np.arange(50, dtype=np.int32)
    assert len(stretch_hashes(tokens)) == 38
    assert stretch_hashes(tokens)[5] == stretch_hashes(tokens[5:18])[0]
    assert not len(stretch_hashes(tokens[:12]))


def test_a_cloze_item_counts_from_its_continuation(arms: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "cloze.jsonl"
    lines = [json.dumps({"context": "w1 w2 w3 ", "continuation": f"w{at} w5"}) for at in range(30)]
    path.write_text("\n".join(lines))
    prepare(Wanted(arms, (str(path),)), tmp_path / "to")
    held_out = load_held_out(tmp_path / "to" / HELD_OUT)
    assert set(held_out.scored_from.tolist()) == {3}
    assert set(np.diff(held_out.offsets).tolist()) == {5}
    assert held_out.sizes[7] == len("w7 w5")
    assert set(held_out.domains) == {"cloze"}
    assert not shared_with(held_out, [np.arange(9, dtype=np.int32)]).any()


def test_a_difference_between_results_is_a_verdict_with_its_groups_and_price(
    arms: tuple[str, str], sets: str, tmp_path: Path
) -> None:
    folder = tmp_path / "to"
    plan = prepare(Wanted(arms, (sets,)), folder)
    with pytest.raises(RecipeError, match="12 of 12"):
        judge(folder)
    planted.put_results(folder, plan, -0.05)
    verdict = judge(folder)
    assert verdict.outcome == BETTER
    assert verdict.differences[max(plan.rates)].value == pytest.approx(-0.05, abs=0.01)
    assert {name for name, found in verdict.groups.items() if found.high < 0} == {
        "domain part 0",
        "domain part 1",
        "language made-up",
    }
    stored = json.loads((folder / "verdict.json").read_bytes())
    assert (stored["outcome"], stored["plan"]["seeds"]) == (BETTER, [0, 1, 2])
    assert any("better" in line for line in lines_of(verdict))
    noise = noise_of(folder, plan)
    assert noise.seconds == 36.0
    assert 0 < noise.deviation < 0.01 < 10 * noise.detectable
    lines = list(price_lines(noise, plan, 0.0005, 100.0))
    assert "0.12 hours" in lines[0]
    assert "12.00 US dollars" in lines[0]


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"text": 3}', '{"context": "a"}', '{"text": ""}', '{"text": "a", "domain": 3}']
)
def test_a_line_that_is_no_document_is_refused_by_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"text": "sound"}\n\n' + line + "\n")
    with pytest.raises(RecipeError, match="line 3"):
        read_items([str(path)])


def test_copies_are_no_further_documents(tmp_path: Path) -> None:
    """Each would narrow the interval, and let a verdict of few documents decide over one of many."""
    for name in ("news", "again"):
        records = [{"text": "one"}, {"text": "two"}, {"context": "one", "continuation": "two"}, {"text": "one"}]
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    items = read_items([str(tmp_path / "news.jsonl"), str(tmp_path / "again.jsonl")])
    assert [(item.get("context"), scored_in(item)) for item in items] == [(None, "one"), (None, "two"), ("one", "two")]


def test_arms_that_cannot_be_compared_are_refused(arms: tuple[str, str], sets: str, tmp_path: Path) -> None:
    other = planted.arm(tmp_path, "other", planted.texts(30, 3))
    (tmp_path / "tokenizer.json").write_text((tmp_path / "tokenizer.json").read_text().replace('"w7"', '"v7"'))
    different = planted.arm(tmp_path, "different", planted.texts(30, 3))
    with pytest.raises(RecipeError, match="tokenizers"):
        prepare(Wanted((other, different), (sets,)), tmp_path / "to")
    with pytest.raises(RecipeError, match="no version"):
        prepare(Wanted((arms[0], arms[1].replace("@1", "@7")), (sets,)), tmp_path / "to")
    with pytest.raises(RecipeError, match="seeds"):
        prepare(Wanted(arms, (sets,), seeds=1), tmp_path / "to")


@pytest.mark.parametrize(
    "options",
    [
        ["--datasets", "a@1"],
        ["--datasets", "a@1,a@1"],
        ["--recipes", "web,web_en"],
        ["--datasets", "r/a@1,r/b@1", "--rates", "0.1,x"],
        ["--datasets", "r/a@1,r/b@1", "--rates", "7"],
    ],
)
def test_what_makes_no_sense_is_refused_by_the_command(tmp_path: Path, options: list[str]) -> None:
    command = ["ablate", *options, "--held-out", "none.jsonl", "--to", str(tmp_path / "to"), "--prepare"]
    assert main(command) == RecipeError.exit_code


def test_an_arm_that_cannot_be_made_is_refused_by_what_its_run_said(tmp_path: Path) -> None:
    recipes = [recipe_file(tmp_path, name, 1) for name in ("first", "second")]
    with pytest.raises(RecipeError, match=r"ended with 78.*nowhere does not exist; name"):
        make_arms(recipes, [str(tmp_path / "nowhere")], tmp_path / "to", lambda _: None)
