"""Generated texts become documents, and those that do not say what their sources say are rejected with evidence."""

import hashlib
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from pipeline_tasks.cards import stage_card
from pipeline_tasks.engines.choose import engine
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.generators.prompt import PromptParams, read_prompts
from pipeline_tasks.inspect.lint.unjudged_texts import unjudged_texts
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.recipe import Recipe, load_recipe, parse_recipe
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.schema import GENERATED, GENERATION, LOCATOR
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages import NAMES
from pipeline_tasks.stages.filter_generated import STAGE, Params, bounds, redecide, remarks
from pipeline_tasks.stages.filter_generated.measuring import FAITHFULNESS, unfold
from pipeline_tasks.text.faith.vocabulary import FOLDER
from tests.documents import documents
from tests.refining import commit_parent, refined, row_digests, rows

SOURCE = (
    "On 12 May 2021 the harbor of Hamburg closed after Maria Keller found 1,200 tons of salt. "
    "The city did not pay the workers, who had asked for 35 percent more."
)
FAITHFUL = (
    "Hamburg's harbor shut on 12 May 2021, when Maria Keller found 1,200 tons of salt. "
    "Workers wanted 35 % more, but were not paid by the city."
)


def text(written: str | None = FAITHFUL, stop: str = "stop", prompt: str = "rewrite", **more: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {field.name: None for field in GENERATED}
    told = {"start": 0, "end": len(SOURCE), "seed": 7, "model": "m@0123456789abcdef"}
    return entry | told | {"prompt": prompt, "text": written, "stop": stop} | more


def table(*texts: list[dict[str, Any]], language: str = "en", source: str = SOURCE) -> pa.Table:
    return documents(
        [f"{source}{' More.' * at}" for at in range(len(texts))],
        language=pa.array([language] * len(texts)),
        score=pa.array([0.5] * len(texts)),
        generated=pa.array(texts, pa.list_(GENERATED)),
        n_generated=pa.array(map(len, texts), pa.int64()),
    )


def run(root: Path, tables: list[pa.Table], **params: Any) -> Manifest:
    return refined(root, STAGE.name, commit_parent(root, tables), params)[1]


def reasons(root: Path, *texts: dict[str, Any], **params: Any) -> list[str]:
    """Return why texts of one document are rejected, "" for those that are kept, in their order."""
    manifest = run(root, [table([*texts])], **params)
    kept = {row["generation"]["prompt"]: "" for row in rows(root, manifest).to_pylist() if row["parent"]}
    lost = {row["generation"]["prompt"]: row["reason"] for row in rows(root, manifest, "rejects").to_pylist()}
    return [(kept | lost)[each["prompt"]].removeprefix("filter_generated:") for each in texts]


def test_texts_become_documents_behind_their_sources(tmp_path: Path) -> None:
    manifest = run(tmp_path, [table([text()], []), table([text(), text(prompt="b")])])
    assert [shard.rows for shard in manifest.shards] == [2, 1, 1, 2]
    kept = rows(tmp_path, manifest).to_pylist()
    sources = {row["id"]: row for row in kept if row["origin"] == "source"}
    made = [row for row in kept if row["origin"] == "generated"]
    assert {"generated", "n_generated"}.isdisjoint(kept[0])
    assert all(row[FAITHFULNESS] is row["generation"] is row["parent"] is None for row in sources.values())
    assert len({row["id"] for row in made}) == 2
    for row in made:
        assert {name: row[name] for name in LOCATOR.names} == {
            name: sources[row["parent"]][name] for name in LOCATOR.names
        }
        assert (row["text"], row["chars"], row["language"]) == (FAITHFUL, len(FAITHFUL), "en")
        assert (row["title"], row["score"]) == (None, None)
        assert set(row["generation"]) == {field.name for field in GENERATION}
        assert row["generation"]["seed"] == 7


def test_two_inputs_give_what_each_gives(tmp_path: Path) -> None:
    tables = [table([text()], [text("No. 5 is in Oslo.")]), table([text(prompt="c")])]
    whole = run(tmp_path / "whole", tables)
    parts = [run(tmp_path / str(at), [one]) for at, one in enumerate(tables)]
    apart = [digest for at, part in enumerate(parts) for digest in row_digests(tmp_path / str(at), part.shards)]
    assert row_digests(tmp_path / "whole", whole.shards) == apart


@pytest.mark.parametrize("keep", ["both", "generated", "source"])
def test_every_source_and_every_text_is_accounted_for(keep: str, tmp_path: Path) -> None:
    manifest = run(tmp_path, [table([text(), text("", prompt="b")], [])], keep=keep)
    assert manifest.rows + sum(manifest.rejected.values()) == 2 + 2
    assert manifest.rejected.get("filter_generated:source", 0) == (2 if keep == "generated" else 0)
    assert manifest.rejected.get("filter_generated:generated", 0) == (1 if keep == "source" else 0)


@pytest.mark.parametrize(
    ("written", "stop", "why"),
    [
        (FAITHFUL, "stop", ""),
        (None, "error", "failed"),
        (None, "too_long", "too_long"),
        (None, "refused", "refusal"),
        ("I'm sorry, but I cannot help you with that request.", "stop", "refusal"),
        (FAITHFUL, "length", "unfinished"),
        (" \n", "stop", "empty"),
        (f"Sure, here is your text:\n{FAITHFUL}", "stop", "leak"),
        (
            "Die Stadt liegt an einem breiten Fluss und hat einen alten Hafen, in dem viele Schiffe anlegten.",
            "stop",
            "language",
        ),
        ("Salt.", "stop", "length"),
        (f"{FAITHFUL} Hamburg's harbor. Maria Keller's salt. The workers' city. " * 2, "stop", "length"),
        (FAITHFUL * 6, "stop", "repeated"),
        ("Sailors enjoy quiet evenings with friends and cheerful songs.", "stop", "invented"),
        (f"{FAITHFUL} Sailors enjoy quiet evenings.", "stop", "invented"),
        (f"{FAITHFUL} Sailors enjoy quiet evenings.", "length", "invented"),
        ("the salt of the harbor was salt and " * 8, "stop", "repeated"),
        (SOURCE, "stop", "copied"),
        (FAITHFUL.replace("1,200", "1,300"), "stop", "figures"),
        (FAITHFUL.replace("12 May", "14 May"), "stop", "dates"),
        (FAITHFUL.replace("tons", "kg"), "stop", "units"),
        (FAITHFUL.replace("Keller", "Brandt"), "stop", "names"),
        (FAITHFUL.replace("were not", "were"), "stop", "negation"),
    ],
)
def test_each_reason_is_given(written: str | None, stop: str, why: str, tmp_path: Path) -> None:
    params = {"shortest": 0.05 if why == "length" else 0.01, "longest": 1.9 if why == "length" else 9.0}
    assert reasons(tmp_path, text(written, stop), **params) == [why]


def test_reasons_of_the_card_are_those_that_are_given() -> None:
    assert {reason.partition(":")[2] for reason in STAGE.reasons} == {
        *("failed", "too_long", "refusal", "unfinished", "empty", "leak", "language", "length", "repeated", "copied"),
        "invented",
        *("figures", "dates", "units", "names", "negation", "source", "generated"),
    }


def test_evidence_has_every_bound_and_places_but_no_words(tmp_path: Path) -> None:
    written = FAITHFUL.replace("1,200", "1,300").replace("Keller", "Brandt")
    manifest = run(tmp_path, [table([text(written)])])
    [row] = rows(tmp_path, manifest, "rejects").to_pylist()
    figures, names = json.loads(row["evidence"])
    assert (figures["rule"], figures["value"], figures["bound"]) == ("filter_generated:figures", 1, 0.0)
    assert [written[start:end] for start, end in figures["spans"]] == ["1,300 tons"]
    assert [written[start:end] for start, end in names["spans"]] == ["Brandt"]
    assert "Brandt" not in row["evidence"]


def test_a_prompt_says_language_and_lengths(tmp_path: Path) -> None:
    german = (
        "Am 12. Mai 2021 schloss der Hafen von Hamburg, nachdem Maria Keller 1.200 Tonnen Salz gefunden hatte. "
        "Die Stadt bezahlte die Arbeiter nicht, die 35 Prozent mehr verlangt hatten."
    )
    prompts = {"german": {"prompt": "translation", "language": "de"}}
    changed = german.replace("1.200", "1.300")
    texts = [text(german, prompt="german"), text(german, prompt="other")]
    assert reasons(tmp_path / "a", *texts, prompts=prompts) == ["", "language"]
    assert reasons(tmp_path / "b", text(changed, prompt="german"), prompts=prompts) == ["figures"]
    assert reasons(tmp_path / "c", text("Hamburg.", prompt="german"), prompts=prompts, shortest=0.0) == ["length"]


def test_what_is_wrong_with_a_text_comes_before_its_size(tmp_path: Path) -> None:
    written = f"{FAITHFUL.replace('1,200', '1,300')} Sailors enjoy quiet evenings."
    manifest = run(tmp_path, [table([text(written, "length")])], longest=0.5)
    [row] = rows(tmp_path, manifest, "rejects").to_pylist()
    rules = [failure["rule"].partition(":")[2] for failure in json.loads(row["evidence"])]
    assert rules == ["invented", "figures", "unfinished", "length"]
    [start, end] = json.loads(row["evidence"])[0]["spans"][0]
    assert written[start:end].strip() == "Sailors enjoy quiet evenings."


def test_a_translation_is_not_compared_by_its_stems(tmp_path: Path) -> None:
    german = "Der Hafen schloss im Mai, nachdem viele Tonnen Salz gefunden wurden, und niemand bekam Geld."
    prompts = {"german": {"prompt": "translation", "language": "de"}}
    assert reasons(tmp_path / "other", text(german, prompt="german"), prompts=prompts, grounded=1.0) == [""]
    assert reasons(tmp_path / "same", text(), grounded=1.0) == ["invented"]


def test_sentences_of_the_prompt_are_leaks(tmp_path: Path) -> None:
    told = f"{FAITHFUL} Answer with the rewritten text alone."
    assert reasons(tmp_path, text(told), prompts={"rewrite": {}}) == ["leak"]


def test_another_window_is_another_source(tmp_path: Path) -> None:
    """What stands in the document and not in the window that the model read is not known to it."""
    first = SOURCE.index("The city")
    manifest = run(
        tmp_path, [table([text("The city did not pay the workers on 12 May 2021.", start=first, end=len(SOURCE))])]
    )
    assert set(manifest.rejected) == {"filter_generated:dates"}


def test_other_bounds_measure_nothing_again(tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, [table([text(FAITHFUL.replace("1,200", "1,300"))])])
    works = [RefineRequest(str(tmp_path), STAGE.name, params, parent) for params in ({}, {"figures": 1})]
    first = refine(works[0], engine("local"))
    second = refine(works[1], engine("local"))
    assert (first.cost.ran, first.cost.reused) == (3, 0)  # one shard: measured, judged, and its sources
    assert (second.cost.ran, second.cost.reused) == (2, 1)
    assert first.manifest.rejected == {"filter_generated:figures": 1}
    assert second.manifest.rejected == {}


def test_other_bounds_are_foretold(tmp_path: Path) -> None:
    """`redecide` says of stored rows what a run with these bounds gives, in both directions."""
    texts = [text(FAITHFUL.replace("1,200", "1,300")), text(prompt="b"), text(SOURCE, prompt="c")]
    texts.append(text(f"{FAITHFUL} Sailors enjoy quiet evenings with friends.", prompt="d"))
    manifest = run(tmp_path / "now", [table(texts)])
    others = [{"figures": 1.0}, {"copied": 1.0}, {"copied": 0.2, "figures": 3.0}, {"invented": 1.0}, {"grounded": 0.9}]
    foretold: list[dict[str | None, int]] = [{} for _ in others]
    for part in ("shards", "rejects"):
        for batch in rows(tmp_path / "now", manifest, part).to_batches():
            for counts, found in zip(foretold, redecide(Params(), batch, others), strict=True):
                for reason in found.to_pylist():
                    counts[reason] = counts.get(reason, 0) + 1
    for at, (other, counts) in enumerate(zip(others, foretold, strict=True)):
        then = run(tmp_path / str(at), [table(texts)], **other)
        expected: dict[str | None, int] = {None: then.rows}
        expected.update(then.rejected)
        assert counts == expected


def test_every_bound_is_a_param() -> None:
    assert {bound.param for bound in bounds(Params())} <= {*Params.__dataclass_fields__}
    assert [*remarks(Params())] == []
    assert len([*remarks(Params(names=float("inf")))]) == 1


def test_no_batches_are_told_apart() -> None:
    """What is measured of a text follows from it and its source alone."""
    whole = table([text(), text("Oslo has 7 docks.", prompt="b")], [text(prompt="c")], [])
    measured = []
    for size in (1, 3):
        found = unfold(iter(whole.to_batches(max_chunksize=size)), prompts={}, model=FilePath(""))
        measured.append([row for batch in found for row in batch.to_pylist()])
    assert measured[0] == measured[1]
    assert [row["parent"] for row in measured[0]] == [whole["id"][0].as_py()] * 2 + [whole["id"][1].as_py()]


def recipe(folder: Path, *stages: str) -> Recipe:
    path = folder / "r.yaml"
    path.write_text(yaml.safe_dump({"stages": {stage: {} for stage in stages}}, sort_keys=False))
    return load_recipe(str(path))


def test_lint_asks_for_what_judges_generated_texts(tmp_path: Path) -> None:
    judged = ("ingest", "extract", "scrub_pii", "decontaminate", "filter_generated")
    missing = [*unjudged_texts(recipe(tmp_path, *judged))]
    assert [finding.where for finding in missing] == ["filter_generated"] * 2
    assert "`scrub_generated`" in missing[0].message
    assert "`decontaminate_generated`" in missing[1].message
    assert [*unjudged_texts(recipe(tmp_path, *judged, "scrub_generated", "decontaminate_generated"))] == []
    assert [*unjudged_texts(recipe(tmp_path, "ingest", "extract", "filter_generated"))] == []


@pytest.mark.parametrize("late", sorted(name for name in NAMES if stage_card(name).removes == "copies"))
def test_what_removes_copies_belongs_before_the_model(tmp_path: Path, late: str) -> None:
    (found,) = unjudged_texts(recipe(tmp_path, "ingest", "extract", "filter_generated", late))
    assert (found.where, found.fault) == (late, True)
    assert "is behind filter_generated" in found.message


def test_what_no_model_may_read_is_removed_before_it(tmp_path: Path) -> None:
    prompts = {"generator": {"kind": "endpoint", "name": "m"}, "prompts": {"rewrite": {}}}
    stages = {"ingest": {}, "extract": {}, "rephrase": prompts, "scrub_pii": {}}
    (found,) = unjudged_texts(parse_recipe({"stages": stages}, "ours"))
    assert (found.where, found.fault) == ("scrub_pii", True)
    assert "put it before rephrase" in found.message


WORDS = (1, "676384c9da5005c40b629ebd468d8e1a")
"""The version of the stage, and the digest of the words that it reads with: other words are another version."""


def test_other_words_are_another_version() -> None:
    files = sorted(FOLDER.glob("*.toml"))
    assert len(files) > 5
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    assert (STAGE.version, hashlib.sha256(" ".join(digests).encode()).hexdigest()[:32]) == WORDS


def test_another_prompt_of_the_same_name_is_refused() -> None:
    named = {"rewrite": PromptParams(prompt="summary")}
    (same,) = read_prompts(named)
    for digest, is_refused in ((same.digest, False), (None, False), ("0" * 32, True)):
        rows = iter(table([text(prompt_digest=digest)]).to_batches())
        with pytest.raises(RecipeError, match="prompts: rewrite is another prompt") if is_refused else nullcontext():
            assert [batch.num_rows for batch in unfold(rows, prompts=named, model=FilePath(""))] == [1]
