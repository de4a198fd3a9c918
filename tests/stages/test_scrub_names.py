"""Names of persons are found by a pipeline of spaCy and replaced as other personal data is, on every engine alike."""

import importlib.util
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.facts.personal import summarize_findings
from pipeline_tasks.gate.facts.subject import Subject
from pipeline_tasks.run.idle_parts import idle_parts
from pipeline_tasks.run.tasks import states
from pipeline_tasks.scorers.entities import read_card
from pipeline_tasks.stage import FilePath, replace_column
from pipeline_tasks.stages.scrub_pii import FAILED, KEY_VARIABLE, PII, Params, check_files
from pipeline_tasks.text.pii.candidates import Limits, Span
from pipeline_tasks.text.pii.scrubbing import scrub_text
from tests.refining import commit_parent, refined, rows
from tests.spacy_pipeline import fail_on, given, noted_texts, write_pipeline

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("spacy") is None, reason="spaCy is not installed (requirements-dev.txt has it)"
)

ADA, GRACE = "Ada Lovelace lived in London.", "Grace Hopper met Alan Turing in Paris."
CALM = "The river was calm and the road was long. "
LABELS = {"PERSON": "name", "GPE": "address"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_pipeline(tmp_path_factory.mktemp("pipeline"))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each text was given to a pipeline in this process."""
    return noted_texts(monkeypatch)


def params_of(model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "labels": LABELS, "kinds": {"name": "redact"}} | more


def scrubbed(root: Path, table: pa.Table, params: dict[str, Any], **how: Any) -> tuple[Any, list[dict[str, Any]]]:
    parent = commit_parent(root, [table.slice(0, 2), table.slice(2)])
    manifest = refined(root, "scrub_pii", parent, params, **how)[1]
    return manifest, rows(root, manifest).to_pylist()


def test_names_are_replaced_counted_and_said_by_their_places(model: str, tmp_path: Path) -> None:
    manifest, found = scrubbed(tmp_path, given([ADA, GRACE, CALM, "", None]), params_of(model))
    assert [row["text"] for row in found] == [
        "<NAME> lived in London.", "<NAME> met <NAME> in Paris.", CALM, "", None,
    ]  # fmt: skip
    assert [row["chars"] for row in found[:2]] == [len(row["text"]) for row in found[:2]]
    assert [row["pii_name"] for row in found] == [1, 2, 0, 0, 0]
    assert {row["pii_address"] for row in found} == {None}
    [redaction] = found[0]["redactions"]
    assert redaction == {"kind": "name", "start": 0, "end": len("Ada Lovelace"), "at": 0, "action": "redact"}
    assert manifest.metrics["kept"]["pii_name"]["sum"] == 3
    assert not [name for name, _ in manifest.schema if name.startswith("named_")]


def test_each_kind_has_its_action(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "rotate me, rotate me")
    kinds = {"name": "pseudonymize", "address": "redact"}
    texts: list[str | None] = [ADA, "Alan Turing met Grace Hopper.", GRACE]
    _, found = scrubbed(tmp_path / "both", given(texts), params_of(model, kinds=kinds))
    ada, alan, grace = (row["text"] for row in found)
    assert ada.startswith("name_")
    assert ada.endswith(" lived in <ADDRESS>.")
    assert set(alan.rstrip(".").split(" met ")) == set(grace.removesuffix(" in <ADDRESS>.").split(" met "))
    manifest, found = scrubbed(tmp_path / "drop", given([ADA, CALM]), params_of(model, kinds={"name": "drop"}))
    assert [row["text"] for row in found] == [CALM]
    assert dict(manifest.rejected) == {PII: 1}


def test_titles_are_read_too(model: str, tmp_path: Path) -> None:
    table = given([CALM, CALM])
    batch = table.to_batches()[0]
    table = pa.Table.from_batches([replace_column(batch, "title", pa.array([ADA, None], pa.string()))])
    _, found = scrubbed(tmp_path, table, params_of(model))
    assert [row["title"] for row in found] == ["<NAME> lived in London.", None]


def test_what_forms_find_is_replaced_beside_names(model: str, tmp_path: Path) -> None:
    text = "Été à Paris. Ada Lovelace lived in London. Write to jane.doe@mail.example.org or 212-736-5000."
    _, [row] = scrubbed(tmp_path, given([text]), params_of(model))
    assert row["text"] == "Été à Paris. <NAME> lived in London. Write to <EMAIL> or <PHONE>."
    for redaction in row["redactions"]:
        replaced = {"name": "Ada Lovelace", "email": "jane.doe@mail.example.org", "phone": "212-736-5000"}
        assert text[redaction["start"] : redaction["end"]] == replaced[redaction["kind"]]


@pytest.mark.parametrize(
    ("by_model", "expected"),
    [
        (["é Jane Doe"], "<NAME> <EMAIL> and <PHONE>!"),
        (["é Jane Doe jane@"], "<NAME> <EMAIL> and <PHONE>!"),
        (["Jane", "Doe jane@example.org and 212-736-5000!"], "é <NAME> <NAME> <EMAIL> <NAME> <PHONE>!"),
        (["jane@example", "736-5000"], "é Jane Doe <EMAIL> and <PHONE>!"),
    ],
)
def test_what_forms_find_wins_and_no_part_of_a_name_is_left(by_model: list[str], expected: str) -> None:
    text = "é Jane Doe jane@example.org and 212-736-5000!".encode()
    starts = [text.index(name.encode()) for name in by_model]
    names = [
        Span(start, start + len(name.encode()), "name", name) for start, name in zip(starts, by_model, strict=True)
    ]
    result = scrub_text(text, Limits(), lambda span: f"<{span.kind.upper()}>".encode(), names)
    assert result.text.decode() == expected


def test_texts_in_other_languages_are_not_read(model: str, read: Counter[str], tmp_path: Path) -> None:
    manifest, found = scrubbed(tmp_path, given([ADA, GRACE], ["de", "en-Latn"]), params_of(model))
    assert [row["text"] for row in found] == [ADA, "<NAME> met <NAME> in Paris."]
    assert [row["pii_name"] for row in found] == [None, 2]
    assert ADA not in read
    assert not idle_parts(manifest)
    manifest, _ = scrubbed(tmp_path, given([ADA], ["de"]), params_of(model))
    assert "language of `model`" in str(idle_parts(manifest)[0])


def test_what_has_nothing_to_find_is_said(model: str, tmp_path: Path) -> None:
    manifest, _ = scrubbed(tmp_path, given([CALM]), params_of(model))
    assert "finds no name" in str(idle_parts(manifest)[0])
    manifest, _ = scrubbed(tmp_path, given([ADA]), params_of(model, kinds={}))
    assert "`model` reads nothing" in str(idle_parts(manifest)[0])
    assert manifest.metrics["kept"]["pii_name"]["count"] == 0


def test_no_text_is_read_again_for_another_action_or_label(model: str, read: Counter[str], tmp_path: Path) -> None:
    first, _ = scrubbed(tmp_path, given([ADA, CALM]), params_of(model))
    assert read[ADA] == read[CALM] == 1
    second, found = scrubbed(tmp_path, given([ADA, CALM]), params_of(model, kinds={"address": "redact"}))
    assert found[0]["text"] == "Ada Lovelace lived in <ADDRESS>."
    scrubbed(tmp_path, given([CALM, ADA, GRACE]), params_of(model))
    assert (read[ADA], read[CALM], read[GRACE]) == (1, 1, 1)
    assert first.fingerprint != second.fingerprint


def test_the_model_is_identity_and_its_path_is_not(model: str, tmp_path: Path) -> None:
    moved = shutil.copytree(model, tmp_path / "moved")
    other = write_pipeline(tmp_path / "other", rounds=24)
    prints = [
        scrubbed(tmp_path / str(at), given([ADA]), params_of(str(folder)))[0].fingerprint
        for at, folder in enumerate((model, moved, other))
    ]
    assert prints[0] == prints[1] != prints[2]


def test_a_document_that_the_model_fails_on_is_quarantined(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_on(monkeypatch, "Paris")
    monkeypatch.setattr(states, "_waiting", [])
    for _ in range(2):
        manifest, found = scrubbed(tmp_path, given([ADA, GRACE, CALM]), params_of(model))
        assert dict(manifest.quarantined) == {FAILED: 1}
        assert [row["text"] for row in found] == ["<NAME> lived in London.", CALM]


def test_a_recipe_that_cannot_find_names_is_refused(model: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="only a model finds"):
        Params(kinds={"name": "redact"})
    with pytest.raises(RecipeError, match="no label of `model`"):
        Params(kinds={"address": "redact"}, model=FilePath(model), labels={"PERSON": "name"})
    with pytest.raises(RecipeError, match="labels has email"):
        Params(model=FilePath(model), labels={"PERSON": "email"})  # type: ignore[dict-item]
    assert read_card(model).labels == ("GPE", "PERSON")
    check_files(Params(model=FilePath(model), labels={"GPE": "address"}))
    with pytest.raises(RecipeError, match=r"labels has PER; .* finds GPE, PERSON"):
        check_files(Params(model=FilePath(model), labels={"PER": "name"}))
    with pytest.raises(RecipeError, match="no folder of a spaCy pipeline"):
        check_files(Params(model=FilePath(str(tmp_path))))


def test_the_gate_asks_no_canary_of_a_model(model: str, tmp_path: Path) -> None:
    manifest, _ = scrubbed(tmp_path, given([ADA, GRACE]), params_of(model))
    facts = summarize_findings(Subject(str(tmp_path), manifest))
    assert "canary_recall.name" not in facts
    assert "canary_recall.email" in facts


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.nightly) for name in ("spark", "ray")])
def test_every_engine_and_batch_stores_the_same(
    name: str, model: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    table = given([f"{text} {row}" for row in range(8) for text in (ADA, GRACE, CALM)])
    local, found = scrubbed(tmp_path / "local", table, params_of(model))
    address = request.getfixturevalue(name)
    there, _ = scrubbed(tmp_path / name, table, params_of(model), on=name, address=address, batch_rows=3)
    assert (there.fingerprint, there.shards, there.metrics) == (local.fingerprint, local.shards, local.metrics)
    assert sum(row["pii_name"] for row in found) > len(table) // 2
