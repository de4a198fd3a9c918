"""Names are found in whole texts by a pipeline of spaCy, once for all runs, and on every engine alike."""

import importlib.util
import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.run.idle_parts import idle_parts
from pipeline_tasks.run.tasks import states
from pipeline_tasks.scorers.entities import WINDOW, read_card, windows
from pipeline_tasks.stages.enrich import Params, check_files
from tests.refining import commit_parent, refined, rows
from tests.spacy_pipeline import fail_on, given, noted_texts, write_pipeline

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("spacy") is None, reason="spaCy is not installed (requirements-dev.txt has it)"
)

CALM = "The river was calm and the road was long. "
TEXTS = ["Ada Lovelace lived in London.", "Grace Hopper met Alan Turing in Paris.", CALM, "", None]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_pipeline(tmp_path_factory.mktemp("pipeline"))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each text was given to a pipeline in this process."""
    return noted_texts(monkeypatch)


def enriched(root: Path, table: pa.Table, pipeline: str, **how: Any) -> tuple[Any, dict[str | None, dict[str, Any]]]:
    parent = commit_parent(root, [table.slice(0, 2), table.slice(2)])
    manifest = refined(root, "enrich", parent, {"entities": pipeline}, **how)[1]
    return manifest, {row["text"]: row for row in rows(root, manifest).to_pylist()}


def test_names_are_found_with_their_places_and_counts(pipeline: str, tmp_path: Path) -> None:
    manifest, found = enriched(tmp_path, given(TEXTS), pipeline)
    assert manifest.rows == len(TEXTS)
    named = {
        text: [(each["label"], text[each["start"] : each["end"]]) for each in row["entities"]]
        for text, row in found.items()
        if text
    }
    assert named == {
        TEXTS[0]: [("PERSON", "Ada Lovelace"), ("GPE", "London")],
        TEXTS[1]: [("PERSON", "Grace Hopper"), ("PERSON", "Alan Turing"), ("GPE", "Paris")],
        CALM: [],
    }
    assert [found[text]["entity_label"] for text in TEXTS] == ["GPE", "PERSON", "none", "none", "none"]
    assert [found[text]["entity_count"] for text in TEXTS] == [2, 3, 0, 0, 0]
    assert found[TEXTS[1]]["entity_counts"] == "PERSON:2 GPE:1"
    assert manifest.metrics["kept"]["entity_label"]["bins"] == {"GPE": 1, "PERSON": 1, "none": 3}
    assert found[TEXTS[0]]["document_type"] == "unknown"


def test_without_a_pipeline_nothing_is_said_of_names(tmp_path: Path) -> None:
    _, manifest = refined(tmp_path, "enrich", commit_parent(tmp_path, [given(TEXTS)]))
    assert "entities" not in dict(manifest.schema)
    assert "entities" not in manifest.params


def test_a_text_of_any_length_is_read_to_its_end(pipeline: str, tmp_path: Path) -> None:
    """spaCy refuses more than a million characters."""
    text = CALM * 26_000 + "Alan Turing was born in London."
    assert len(text) > 1_000_000
    [*_, (_, label, name)] = [
        (each["start"], each["label"], text[each["start"] : each["end"]])
        for each in enriched(tmp_path, given([text]), pipeline)[1][text]["entities"]
    ]
    assert (label, name) == ("GPE", "London")


@pytest.mark.parametrize("text", ["", "a", "word " * 50, "line of it\n" * 30, "x" * 201, "é\n" * 99])
def test_windows_are_the_whole_text_and_end_at_lines_or_words(text: str) -> None:
    parts = list(windows(text, 40))
    assert "".join(part for _, part in parts) == text
    assert [start for start, _ in parts] == [sum(len(part) for _, part in parts[:at]) for at in range(len(parts))]
    assert all(len(part) <= 40 for _, part in parts)
    assert all(part[-1] in " \n" for _, part in parts[:-1] if " " in text or "\n" in text)
    assert WINDOW < 1_000_000


def test_texts_in_other_languages_are_not_read(pipeline: str, read: Counter[str], tmp_path: Path) -> None:
    table = given([TEXTS[0], TEXTS[1]], ["de", "en-Latn"])
    manifest, found = enriched(tmp_path, table, pipeline)
    assert [(found[text]["entity_label"], found[text]["entity_count"]) for text in TEXTS[:2]] == [
        ("unread", None),
        ("PERSON", 3),
    ]
    assert set(read) == {TEXTS[1]}
    assert not idle_parts(manifest)
    _, found = enriched(tmp_path, given(TEXTS[:2], ["en", "de"]), pipeline)
    assert found[TEXTS[0]]["entity_label"] == "GPE"
    assert found[TEXTS[1]]["entities"] is None
    none, _ = enriched(tmp_path, given(TEXTS[:3], ["de"] * 3), pipeline)
    assert "language of `entities`" in str(idle_parts(none)[0])


def test_no_text_is_read_twice(pipeline: str, read: Counter[str], tmp_path: Path) -> None:
    enriched(tmp_path / "root", given(TEXTS[:3]), pipeline)
    assert read == Counter(TEXTS[:3])
    _, found = enriched(tmp_path / "root", given([*TEXTS[1:3], "London and Paris are cities."]), pipeline)
    assert read == Counter([*TEXTS[:3], "London and Paris are cities."])
    assert found == enriched(tmp_path / "new", given([*TEXTS[1:3], "London and Paris are cities."]), pipeline)[1]


def test_a_text_that_the_pipeline_fails_on_is_quarantined_alone(
    pipeline: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Path(shutil.copytree(pipeline, tmp_path / "broken"))
    fail_on(monkeypatch, "Paris")
    monkeypatch.setattr(states, "_waiting", [])
    for _ in range(2):
        manifest, found = enriched(tmp_path / "root", given(TEXTS[:4]), str(broken))
        assert dict(manifest.quarantined) == {"error:enrich": 1}
        assert set(found) == {TEXTS[0], CALM, ""}


def test_what_is_no_pipeline_of_names_is_refused(pipeline: str, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(RecipeError, match="no folder of a spaCy pipeline"):
            check_files(Params(str(folder)))  # type: ignore[arg-type]
    other = Path(shutil.copytree(pipeline, tmp_path / "other"))
    meta = json.loads((other / "meta.json").read_text())
    (other / "meta.json").write_text(json.dumps({**meta, "pipeline": ["tagger"]}))
    with pytest.raises(RecipeError, match="finds no entities: its components are tagger"):
        check_files(Params(str(other)))  # type: ignore[arg-type]
    damaged = Path(shutil.copytree(pipeline, tmp_path / "damaged"))
    (damaged / "ner" / "model").write_bytes(b"no model")
    with pytest.raises(RecipeError, match="cannot be read as a spaCy pipeline"):
        check_files(Params(str(damaged)))  # type: ignore[arg-type]


def test_spacy_is_named_where_it_is_missing(pipeline: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    assert read_card(pipeline).language == "en"
    with pytest.raises(RecipeError, match=r"refinery-tokens\[entities\]"):
        check_files(Params(pipeline))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.nightly) for name in ("spark", "ray")])
def test_every_engine_and_batch_stores_the_same(
    name: str, pipeline: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    table = given([f"{text} {row}" for row in range(8) for text in TEXTS[:3]])
    calm, _ = enriched(tmp_path / "local", table, pipeline)
    address = request.getfixturevalue(name)
    there, _ = enriched(tmp_path / name, table, pipeline, on=name, address=address, batch_rows=3)
    assert (there.fingerprint, there.shards, there.metrics) == (calm.fingerprint, calm.shards, calm.metrics)
