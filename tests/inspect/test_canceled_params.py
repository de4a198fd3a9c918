"""Params that another one turns off are found, and really change nothing; bounds on absent facts are explained."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from pipeline_tasks.cards import stage_card
from pipeline_tasks.inspect.lint import lint
from pipeline_tasks.recipe import recipe_names
from pipeline_tasks.stages import NAMES, mix
from pipeline_tasks.stages.filter_quality import FILTERS, WORDED, Params, filter_texts, signals_column
from pipeline_tasks.stages.mix.shares import shares
from tests.documents import documents
from tests.stages.test_filter_quality import PROSE

REFINED: dict[str, Any] = {"ingest": {}, "extract": {}, "filter_url": {}, "filter_language": {}}


def notes(folder: Path, stages: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({"stages": stages, **more}, sort_keys=False))
    return [
        (found.where, found.message)
        for found in lint(str(path))
        if "has no effect" in found.message or found.where.startswith("gates.")
    ]


def refining(stage: str, params: dict[str, Any]) -> dict[str, Any]:
    return REFINED | {stage: params}


LIST = "unwanted.txt"


OFF: list[tuple[str, dict[str, Any], str]] = [
    ("extract", {"language": "German", "fallback": []}, "language"),
    ("extract", {"method": "trafilatura", "fallback": ["trafilatura"]}, "fallback"),
    ("filter_url", {"soft_limit": 3, "domains": LIST}, "soft_limit"),
    ("filter_url", {"matching": "exact", "hard_words": LIST}, "matching"),
    ("filter_language", {"keep": ["en"], "thresholds": {"de": 0.8}}, "thresholds"),
    ("filter_language", {"min_foreign": 100}, "min_foreign"),
    ("filter_language", {"mixed": "reject"}, "mixed"),
    ("filter_quality", {"profiles": ["c4"], "fineweb": {"char_duplicates_ratio": 0.5}}, "fineweb"),
    ("filter_quality", {"profiles": ["fineweb"], "edit": True}, "edit"),
    ("filter_quality", {"profiles": ["dclm"], "words": "unicode"}, "words"),
    ("filter_quality", {"profiles": ["c4_paragraphs"], "packs": "fineweb2"}, "packs"),
    ("cut_templates", {"most": 0, "documents": 9}, "documents"),
    ("dedup_minhash", {"threshold": 0, "similarity": "containment"}, "similarity"),
    ("dedup_minhash", {"quality": "language_score"}, "quality"),
    ("dedup_minhash", {"policy": ["lowest_id", "newest"]}, "policy"),
    ("dedup_substrings", {"min_left": 50}, "min_left"),
    ("score_quality", {"minima": {"toxicity": 0.5}}, "minima.toxicity"),
    ("score_quality", {"weights": {"density": 1.0}, "minima": {}, "shipped_models": True}, "shipped_models"),
    ("filter_toxicity", {"action": "annotate", "fewest": 2}, "fewest"),
    ("filter_toxicity", {"bounds": {}, "fewest": 2}, "fewest"),
    ("scrub_pii", {"action": "drop", "max_spans": 5}, "max_spans"),
    ("decontaminate", {"benchmarks": {"a": "a.jsonl"}, "method": "ngram", "score": 0.5}, "score"),
    ("decontaminate", {"benchmarks": {"a": "a.jsonl"}, "method": "sampled", "overlap": 0.5}, "overlap"),
]
"""A stage that refines, params of it, and the one of them that another turns off."""

OFF_IN_BUILDS: list[tuple[str, dict[str, Any], str]] = [
    ("mix", {"unlisted": "keep"}, "unlisted"),
    ("mix", {"max_epochs": 4}, "max_epochs"),
    ("mix", {"by": "score", "bands": {"score": [0.5]}, "budget_tokens": 9}, "bands"),
    ("mix", {"seed": 7}, "seed"),
    ("mix", {"temperature": 1}, "temperature"),
    ("pack", {"tail": "drop", "pad_id": 3}, "pad_id"),
]


def test_every_stage_whose_card_cancels_params_has_a_case() -> None:
    canceling = {stage for stage in NAMES if stage_card(stage).canceled}
    assert canceling == {stage for stage, _, _ in (*OFF, *OFF_IN_BUILDS)}


@pytest.mark.parametrize(("stage", "params", "without"), OFF)
def test_a_param_that_another_turns_off_is_found_once(
    stage: str, params: dict[str, Any], without: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(LIST).write_text("example.org\n")
    Path("a.jsonl").write_text('{"question": "Why does the ferry leave before the fog has lifted from the water?"}\n')
    [(where, message)] = notes(tmp_path, refining(stage, params))
    assert where == stage
    assert message.startswith(f"`{without}` has no effect: ")
    assert message.endswith(", or remove it")
    written = {name: value for name, value in params.items() if name != without.partition(".")[0]}
    assert notes(tmp_path, refining(stage, written)) == []


@pytest.mark.parametrize(("stage", "params", "without"), OFF_IN_BUILDS)
def test_a_param_of_a_build_that_another_turns_off_is_found(
    stage: str, params: dict[str, Any], without: str, tmp_path: Path
) -> None:
    stages: dict[str, Any] = {"tokenize": {}, "select": {}, "mix": {}, "shuffle": {}, "pack": {}} | {stage: params}
    found = notes(tmp_path, stages, versions={"recipe": "web"})
    assert [message.split("`")[1] for _, message in found] == [without]


def test_shipped_recipes_write_no_such_param() -> None:
    names = [name for name in recipe_names() if name != "demo"]
    assert len(names) > 2
    assert [found for name in names for found in lint(name) if "has no effect" in found.message] == []


# --- They change nothing ----------------------------------------------------------------------------------------------


def judged(**params: Any) -> Any:
    texts = [PROSE, PROSE.replace(".", " ..."), "a { b } lorem ipsum, well-known e.g. co-op's"]
    rows = documents(texts, language=pa.array(["en", "de", "en"]))
    batches = iter(rows.combine_chunks().to_batches())
    return [batch.to_pylist() for batch in filter_texts(batches, params=Params(**params))]


@pytest.mark.parametrize(
    ("profiles", "param"),
    [
        (("c4",), {"limits": {"fineweb": {"char_duplicates_ratio": 0.0}}}),
        (("fineweb",), {"edit": True}),
        (("dclm",), {"words": "unicode"}),
        (("c4",), {"words": "unicode"}),
        (("c4_paragraphs",), {"packs": "fineweb2"}),
    ],
)
def test_what_is_found_in_filter_quality_changes_nothing(profiles: tuple[str, ...], param: dict[str, Any]) -> None:
    assert judged(profiles=profiles, **param) == judged(profiles=profiles)


@pytest.mark.parametrize("profile", sorted(set(FILTERS) - {"c4_badwords"}))
def test_the_profiles_that_count_words_by_the_param_are_these(profile: str) -> None:
    split, unicode = (judged(profiles=(profile,), words=words) for words in ("split", "unicode"))
    column = signals_column(profile)
    assert any(a[column] != b[column] for a, b in zip(split[0], unicode[0], strict=True)) == (profile in WORDED)


@pytest.mark.parametrize("change", [{"unlisted": "keep"}, {"max_epochs": 4.0}])
def test_what_is_found_in_mix_changes_nothing(change: dict[str, Any]) -> None:
    plain = mix.Params(epochs={"de": 2.0})
    tokens = {"en": Fraction(100), "de": Fraction(7)}
    assert shares(tokens, replace(plain, **change)) == shares(tokens, plain)


# --- Bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fact", "change", "message"),
    [
        ("language_share.de", {"min_value": 0.1}, "is never judged: `keep` of `filter_language` does not have de"),
        ("language_share.en", {"critical": {"min_value": 0.1}}, "is skipped where no document is in en"),
        ("language_share.en", {"max_value": 0.9}, ""),
        ("language_share.en", {"trailing": {"severity": "critical"}}, ""),
        ("language_share.*", {"trailing": {"floor": 0.2}}, ""),
        ("retention", {"min_value": 0.1}, ""),
    ],
)
def test_a_bound_on_a_fact_that_may_be_absent_is_explained(
    fact: str, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    found = notes(tmp_path, REFINED, gates={"filter_language": {fact: change}})
    assert len(found) == bool(message)
    assert all(where == "gates.filter_language" and message in said for where, said in found)
