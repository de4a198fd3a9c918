"""A recipe's planted faults are all found, and recipes without faults are let through."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.lint import Finding
from pipeline_tasks.inspect.lint import lint as every_finding
from pipeline_tasks.inspect.preflight import PlannedRun, recipes
from pipeline_tasks.recipe import kept_languages, load_recipe, recipe_names
from pipeline_tasks.stages.filter_quality import FILTERS, Params, filter_texts, signals_column
from tests.documents import documents
from tests.inspect.test_whatif import LISTLESS, published
from tests.scorers.networks import static_folder

UP_TO_QUALITY: dict[str, Any] = {"ingest": {}, "extract": {}, "filter_url": {}, "filter_language": {}}


def recipe(folder: Path, quality: dict[str, Any], stages: dict[str, Any] = UP_TO_QUALITY) -> str:
    path = folder / "web.yaml"
    path.write_text(yaml.safe_dump({"stages": stages | {"filter_quality": quality}}, sort_keys=False))
    return str(path)


def lint(*arguments: Any, **named: Any) -> list[Finding]:
    """Return all findings but what is idle or empty, which is no fault of the rules that are tested here."""
    return [each for each in every_finding(*arguments, **named) if is_of_rules(each.message)]


def is_of_rules(message: str) -> bool:
    return not message.startswith("idle: ") and "{}` means" not in message


def faults(findings: list[Finding]) -> dict[str, str]:
    return {finding.where: finding.message for finding in findings if finding.fault}


@pytest.mark.parametrize("name", [name for name in recipe_names() if name != "demo"])
def test_our_own_recipes_are_sound(name: str) -> None:
    assert lint(name) == []


def test_the_default_recipe_says_what_of_it_is_idle() -> None:
    idle = [finding for finding in every_finding("web") if finding.message.startswith("idle: ")]
    assert [finding.where for finding in idle] == ["filter_url", "score_quality", "decontaminate"]


def test_languages_that_a_stage_has_nothing_for_are_said_of_a_recipe_that_names_them(tmp_path: Path) -> None:
    stages = UP_TO_QUALITY | {"filter_language": {"keep": ["en", "ar", "ca"]}, "score_quality": {}}
    idle = {each.where: each.message for each in every_finding(recipe(tmp_path, {"packs": "web"}, stages))}
    assert "no stop words of ca (" in idle["filter_quality"]
    assert "no model for perplexity in ar, ca (" in idle["score_quality"]


def test_an_empty_section_says_what_it_means(tmp_path: Path) -> None:
    """It rejected a third of a book about a programming language, and nothing said that it means English prose."""
    path = recipe(tmp_path, {})
    meant = {each.where: each for each in every_finding(path) if "{}` means" in each.message}
    assert list(meant) == ["filter_language", "filter_quality"]
    assert not any(each.fault for each in meant.values())
    assert "English alone" in meant["filter_language"].message
    for word in (*FILTERS, "gopher_quality, c4", "web", "fineweb2"):
        assert word in meant["filter_quality"].message
    loaded = load_recipe(path)
    said = [
        each.message for each in recipes(PlannedRun(str(tmp_path / "root"), (loaded,))) if "{}` means" in each.message
    ]
    assert [line.split(": ")[:2] for line in said] == [[f"recipe {loaded.name}", stage] for stage in meant]
    stages = UP_TO_QUALITY | {"filter_language": {"keep": ["en"]}}
    named = recipe(tmp_path, {"packs": "builtin"}, stages)
    assert not [each for each in every_finding(named) if "{}` means" in each.message], "who writes it knows it"


@pytest.mark.parametrize(
    ("stage", "params", "message"),
    [
        ("filter_language", {"threshold": 0}, "`threshold` is 0"),
        ("filter_quality", {"profiles": []}, "`profiles` is empty"),
        ("score_quality", {}, "idle: no model for toxicity"),
        ("score_quality", {"shipped_models": False}, "idle: no model for perplexity"),
        ("filter_url", {}, "idle: no lists"),
        ("decontaminate", {}, "idle: no evaluation sets"),
        ("score_quality", {"minimum": 0, "minima": {}}, "no document is rejected"),
        ("filter_toxicity", {"bounds": {}}, "no document is rejected"),
        ("scrub_pii", {"action": "pseudonymize"}, "REFINERY_PII_KEY is not set"),
    ],
)
def test_a_stage_that_does_less_than_it_says_is_noted(
    stage: str, params: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REFINERY_PII_KEY", raising=False)
    path = tmp_path / "mine.yaml"
    stages = {"ingest": {}, "extract": {}, "filter_language": {}} | {stage: params}
    path.write_text(yaml.safe_dump({"stages": stages}, sort_keys=False))
    notes = [finding for finding in every_finding(str(path)) if message in finding.message]
    assert [(note.fault, note.where) for note in notes] == [(False, stage)]
    assert lint(str(path), allow=[stage]) == []


def test_languages_are_known_by_any_name(tmp_path: Path) -> None:
    stages = {"ingest": {}, "extract": {}, "filter_language": {"keep": ["eng_Latn", "zh-Hans", "zh-Hant"]}}
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"stages": stages | {"score_quality": {}, "filter_toxicity": {}}}, sort_keys=False))
    assert kept_languages(load_recipe(str(path))) == {"en", "zh"}
    assert not [finding for finding in every_finding(str(path)) if " in eng" in finding.message]


def test_languages_that_a_model_is_not_known_to_know_are_noted(tmp_path: Path) -> None:
    """A card that names them, or the recipe, ends the note; without a language no document can be told."""
    model, path = Path(static_folder(tmp_path / "model")), tmp_path / "mine.yaml"

    def notes(*before: str, **semantic: Any) -> list[str]:
        stages = {name: {} for name in ("ingest", "extract", *before)}
        stages |= {"embed": {"model": str(model)}, "dedup_semantic": semantic}
        path.write_text(yaml.safe_dump({"stages": stages}, sort_keys=False))
        found = lint(str(path))
        assert not faults(found)
        return [finding.message for finding in found if finding.where == "dedup_semantic"]

    assert "are unknown" in notes("filter_language")[0]
    assert notes("filter_language", languages=["en"]) == []
    assert "put filter_language before" in notes()[0]
    (model / "README.md").write_text("---\nlanguage: en\n---\n")
    assert notes("filter_language") == []


def test_a_recipe_begins_with_ingest(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("stages: {extract: {}, filter_language: {}}")
    (fault,) = lint(str(path))
    assert (fault.fault, fault.where) == (True, "extract")
    assert "put `ingest: {}` before it" in fault.message


def test_a_stage_after_what_removes_its_columns_goes_before_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    stages = "{tokenize: , select: , decontaminate: , shuffle: , pack: }"
    path.write_text(f"versions: {{recipe: web}}\nstages: {stages}")
    (fault,) = lint(str(path))
    assert fault.message == "needs text, title, chars, which tokenize removed; put it before tokenize"


def test_a_fault_names_the_recipe_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("stages: {ingest: {}, extract: {}, filter_language: {keep: [no]}}")
    assert main(["lint", str(path)]) == RecipeError.exit_code
    (fault, _) = capsys.readouterr().out.splitlines()
    assert fault.count(str(path)) == 1
    assert "quote the word" in fault


@pytest.mark.parametrize(
    ("quality", "where", "message"),
    [
        ({"gopher_quality": {"min_doc_words": 0}}, "gopher_quality:short_doc", "cannot fire.*never below 0"),
        ({"gopher_quality": {"max_bullet_lines_ratio": 1}}, "gopher_quality:too_many_bullets", "cannot fire.*is 1"),
        ({"gopher_repetition": {"dup_line_frac": 1.0}}, "gopher_repetition:dup_line_frac", "cannot fire.*is 1"),
        ({"fineweb": {"line_punct_thr": 0}}, "fineweb:line_punct_ratio", "cannot fire"),
        ({"gopher_quality": {"max_doc_words": float("inf")}}, "gopher_quality:long_doc", "cannot fire"),
        ({"gopher_quality": {"min_doc_words": 9, "max_doc_words": 8}}, "gopher_quality:long_doc", "nothing can pass"),
    ],
)
def test_a_planted_rule_is_found(tmp_path: Path, quality: dict[str, Any], where: str, message: str) -> None:
    (finding,) = lint(recipe(tmp_path, quality))
    assert (finding.fault, finding.where) == (True, where)
    assert re.search(message, finding.message)
    assert lint(recipe(tmp_path, quality), allow=[where]) == []


@pytest.mark.parametrize(
    ("content", "where", "message"),
    [
        ("de: {gopher_quality: {min_dok_words: 3}}", "filter_quality", "nearest is 'min_doc_words'"),
        (
            "de: {gopher_quality: {min_doc_words: 200000}}",
            "gopher_quality:long_doc",
            "nothing of language de can pass: 100000 at most, but gopher_quality:short_doc wants 200000 at least",
        ),
        ("de: {fineweb: {line_punct_thr: 1.5}}", "filter_quality", "must be a number from 0 to 1"),
        (
            "{any: {fineweb: {list: null}}, de: {}}".replace("list", "new_line_ratio"),
            "fineweb:new_line_ratio",
            "",
        ),
        ("any: {fineweb: {new_line_ratio: null}}", "fineweb:new_line_ratio", "packs let every language skip it"),
    ],
)
def test_faults_of_packs_are_found(tmp_path: Path, content: str, where: str, message: str) -> None:
    (tmp_path / "packs.yaml").write_text(content)
    findings = faults(lint(recipe(tmp_path, {"packs": str(tmp_path / "packs.yaml")})))
    assert list(findings) == ([where] if message else [])
    assert not message or message in findings[where]


def test_bounds_that_packs_override_are_noted(tmp_path: Path) -> None:
    quality = {"packs": "fineweb2", "fineweb": {"new_line_ratio": 0.4}}
    (note,) = lint(recipe(tmp_path, quality))
    assert not note.fault
    assert note.where == "fineweb"
    assert note.message.startswith("new_line_ratio=0.4 does not apply to ar, bg, cs,")


def test_rules_are_tried_with_the_packs_of_the_recipe(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("de: {gopher_quality: {min_doc_words: 1}}\nany: {gopher_quality: {min_stop_words: null}}\n")
    published(tmp_path, {"packs": str(path)})
    notes = {finding.where: finding.message for finding in lint(recipe(tmp_path, {"packs": str(path)}), str(tmp_path))}
    assert "gopher_quality:long_doc" in notes
    (note,) = lint(recipe(tmp_path, {}), str(tmp_path))
    assert "was refined with other settings of its signals" in note.message


def test_a_profile_that_is_asked_twice_is_shadowed(tmp_path: Path) -> None:
    findings = faults(lint(recipe(tmp_path, {"profiles": ["fineweb", "c4", "fineweb"]})))
    assert len(findings) == 5
    assert "never decides: fineweb:new_line_ratio before it" in findings["fineweb:new_line_ratio"]


def test_stages_out_of_order_are_found(tmp_path: Path) -> None:
    swapped = {"ingest": {}, "extract": {}, "filter_url": {}}
    findings = lint(recipe(tmp_path, {}, swapped))
    assert [(finding.fault, finding.where) for finding in findings] == [(True, "filter_quality")]
    assert "needs language, which no stage before it writes; put it after filter_language" in findings[0].message
    path = tmp_path / "late.yaml"
    path.write_text("stages: {ingest: {}, filter_language: {}, extract: {}, filter_quality: {}}")
    findings = lint(str(path))
    assert [finding.where for finding in findings] == ["filter_language", "filter_quality"]
    assert "id, title, chars" in findings[0].message
    assert "put it after extract" in findings[0].message


@pytest.mark.parametrize(("types", "kind"), [(["html", "pdf"], "office"), (["html"], "text")])
def test_a_preferred_type_that_the_recipe_does_not_read_is_noted(types: list[str], kind: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    preferred = {"prefer": {"type": [kind, "html"]}}
    stages = {"ingest": {"types": types}, "extract": {}, "dedup_exact": preferred}
    path.write_text(yaml.safe_dump({"name": "mine", "stages": stages}, sort_keys=False))
    (finding,) = lint(str(path))
    assert (finding.fault, finding.where) == (False, "dedup_exact")
    assert (
        f"the type {kind!r}, which the recipe does not read: `types` has {', '.join(types)}; add it" in finding.message
    )
    path.write_text(path.read_text().replace("types:", f"types:\n    - {kind}"))
    assert not lint(str(path))


def test_all_faults_are_said_at_once_with_their_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        """titel: Mine
stages:
  ingest: {}
  extract: {min_chars: many}
  filter_url: {}
  filter_language:
    keep: [English, xx]
    treshold: 0.5
  filter_quality: {gopher_quality: {min_doc_word: 3}}
  dedup_minhas: {}
  scrub_pii: {action: redact}
run:
  partitions: -1
"""
    )
    assert main(["lint", str(path)]) == 78
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAULT")]
    numbers = [int(found[1]) for line in lines if (found := re.match(r"FAULT  line (\d+): ", line))]
    assert sorted(numbers) == [1, 4, 6, 8, 9, 10, 13]
    assert len(numbers) == len(lines)
    said = "\n".join(lines)
    for hint in ("'title'", "'threshold'", "'min_doc_words'", "'dedup_minhash'", "nearest: 'en'"):
        assert hint in said


def test_a_fault_of_a_stage_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("stages:\n  ingest: {}\n  filter_language: {}\n  extract: {}\n")
    assert main(["lint", str(path), "--json"]) == 78
    [fault] = json.loads(capsys.readouterr().out)["faults"]
    assert (fault["where"], fault["line"]) == ("filter_language", 3)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("stages:\n  - extract\n", [(2, r"stages must be a mapping .*\['extract'\]; .*write `KEY:` for `- KEY`")]),
        ("stages:\n- extract:\n    min_chars: 3\n", [(2, r"stages must be .*; a dash makes an item of a list")]),
        ("stages: extract\n", [(2, r"stages must be a mapping of keys to values, not 'extract'$")]),
        ("stages:\n  ingest: {}\n  extract:\n    - min_chars\n", [(4, r"extract must be .*; a dash makes")]),
        ("stages:\n", [(0, r"a\.yaml has no stages; write at least `stages: {ingest: {}}`")]),
        ("partitions: 3\n", [(0, r"a\.yaml has no stages"), (2, r"unknown key 'partitions'")]),
    ],
)
def test_a_recipe_without_a_mapping_of_stages_has_one_fault_with_the_way_out(
    tmp_path: Path, written: str, found: list[tuple[int, str]]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"name: a\n{written}")
    faults = [finding for finding in lint(str(path)) if finding.fault]
    assert [fault.line for fault in faults] == [line for line, _ in found]
    assert all(re.search(message, fault.message) for fault, (_, message) in zip(faults, found, strict=True)), faults


def test_a_missing_file_is_found(tmp_path: Path) -> None:
    stages = UP_TO_QUALITY | {"filter_url": {"domains": str(tmp_path / "no.txt")}}
    findings = faults(lint(recipe(tmp_path, {}, stages)))
    assert list(findings) == ["filter_url"]
    assert "no.txt" in findings["filter_url"]


def test_an_unreadable_recipe_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recipe(tmp_path, {"gopher_quality": {"min_doc_word": 3}})
    assert "did you mean 'min_doc_words'" in faults(lint(path))[path]
    assert main(["lint", path]) == 78
    assert main(["lint", "webb"]) == 78
    assert "did you mean 'web'" in capsys.readouterr().out


def test_rules_are_tried_on_stored_signals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published(tmp_path)
    sound = recipe(tmp_path, {"gopher_quality": {"min_doc_words": 200}})
    notes = {finding.where: finding.message for finding in lint(sound, str(tmp_path)) if not finding.fault}
    assert notes["gopher_quality:long_doc"].startswith("never fired: none of 16")
    assert notes["c4:too_few_sentences"].startswith("never decides: all")
    assert "gopher_quality:short_doc" not in notes
    assert main(["lint", sound, "--root", str(tmp_path)]) == 0
    assert main(["lint", sound, "--root", str(tmp_path), "--strict"]) == 78
    capsys.readouterr()
    assert main(["lint", sound, "--root", str(tmp_path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["notes"]
    assert {note["where"] for note in shown if is_of_rules(note["message"])} == set(notes)


def test_signals_of_other_settings_are_not_used(tmp_path: Path) -> None:
    published(tmp_path)
    (note,) = lint(recipe(tmp_path, {"c4": {"min_words_per_line": 9}}), str(tmp_path))
    assert not note.fault
    assert "was refined with other settings of its signals" in note.message
    assert any("has no published web_en" in finding.message for finding in lint("web_en", str(tmp_path)))


def test_unknown_snapshots_and_reasons_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published(tmp_path)
    sound = recipe(tmp_path, {})
    assert main(["lint", sound, "--root", str(tmp_path), "--snapshot", "2026-45"]) == 78
    assert "snapshot 2026-45 of recipe web has not been published (published: s)" in capsys.readouterr().err
    assert main(["lint", sound, "--allow", "c4:lorem_ipsun"]) == 78
    assert "--allow c4:lorem_ipsun: no rule of filter_quality has this reason; nearest: c4:lorem_ipsum" in (
        capsys.readouterr().err
    )
    assert main(["lint", sound, "--allow", "c4:lorem_ipsum"]) == 0


SIGNALS = [(FILTERS[name], signal) for name in LISTLESS for signal in FILTERS[name].signals]


@given(st.lists(st.text(st.sampled_from("ab .,\n-*…#1éZ中。{(=")), min_size=1, max_size=4))
def test_shares_are_never_above_one_and_no_signal_below_zero(texts: list[str]) -> None:
    docs = documents(texts, language=pa.array(["en", "zh", "th", None][: len(texts)], pa.string()))
    (batch,) = filter_texts(iter(docs.combine_chunks().to_batches()), params=Params(profiles=tuple(LISTLESS)))
    out = []
    for card, signal in SIGNALS:
        values = batch[signals_column(card.name)].field(signal).to_numpy(zero_copy_only=False)
        if np.any(values < 0) or (signal in card.shares and np.any(values > 1)):
            out.append(signal)
    assert out == []


def test_a_snapshot_whose_text_has_another_name_is_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    landed = tmp_path / "landed"
    landed.mkdir()
    (landed / "rows.jsonl").write_text('{"body": "A page of some words.", "url": "https://example.org/"}\n')
    path = tmp_path / "web.yaml"
    faulty = []
    for named in ({}, {"fields": {"text": "body"}}):
        path.write_text(yaml.safe_dump({"stages": UP_TO_QUALITY, **named}, sort_keys=False))
        code = main(["lint", str(path), "--input", str(landed), "--json"])
        faulty.append((code, [fault["where"] for fault in json.loads(capsys.readouterr().out)["faults"]]))
    assert faulty == [(RecipeError.exit_code, ["land"]), (0, [])]
