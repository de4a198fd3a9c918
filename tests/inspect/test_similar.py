"""`refinery look similar` finds the same documents with a store and without, says what it compared, and refuses what it cannot."""

import json
from pathlib import Path
from typing import Any

import pytest
from refinery_vectors.similar import Query, similar
from refinery_vectors.syncing import sync
from refinery_vectors.table import is_installed

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.takedowns import record
from pipeline_tasks.upkeep.vacuum import find_orphans
from tests.scorers.networks import static_folder
from tests.vector_root import DAYS, RECIPE, VectorRoot, by_hand, texts, vector_of, vector_root

needs_lance = pytest.mark.skipif(not is_installed(), reason="pylance is not installed (requirements-dev.txt has it)")


@pytest.fixture
def published(tmp_path: Path) -> VectorRoot:
    return vector_root(tmp_path)


@pytest.fixture(params=["shards", pytest.param("table", marks=needs_lance)])
def searched(request: pytest.FixtureRequest, published: VectorRoot) -> VectorRoot:
    """A root without a store, and with one."""
    if request.param == "table":
        sync(published.root, RECIPE)
    return published


def recipe_file(folder: Path, model: str) -> str:
    path = folder / "own.yaml"
    path.write_text(f"name: {RECIPE}\nstages:\n  ingest: {{}}\n  extract: {{}}\n  embed: {{model: {model}}}\n")
    return str(path)


def rows(published: VectorRoot) -> list[Any]:
    return [row for day in DAYS[:2] for row in published.stored(day).values()]


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["look", "similar", *words, "--json"]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


@pytest.mark.parametrize("asked", ["--id", "--url"])
def test_documents_like_another_are_the_nearest_without_itself(
    searched: VectorRoot, asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = rows(searched)[4]
    named = one["id"].upper() if asked == "--id" else one["url"].replace("https", "http") + "#top"
    found = answered(capsys, asked, named, searched.root, "--limit", "6")
    wanted = [pair for pair in by_hand(rows(searched), vector_of(one)) if pair[1] != one["id"]][:6]
    assert [(each["similarity"], each["id"]) for each in found["documents"]] == wanted
    assert found["origin"]["id"] == one["id"]
    assert (found["in_table"], found["in_shards"]) in ((None, 40), (40, 0))


def test_documents_like_a_text_are_those_of_its_own_words(
    searched: VectorRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = rows(searched)[7]
    file = tmp_path / "text"
    file.write_text(one["text"])
    recipe = recipe_file(tmp_path, searched.model)
    by_file = answered(capsys, "--file", str(file), searched.root, "--recipe", recipe)
    assert by_file["documents"][0]["id"] == one["id"]
    assert by_file["documents"][0]["similarity"] == pytest.approx(1, abs=1e-3)
    assert answered(capsys, "--text", one["text"], searched.root, "--recipe", recipe) == by_file


def test_conditions_choose_documents(searched: VectorRoot, capsys: pytest.CaptureFixture[str]) -> None:
    one = rows(searched)[0]
    found = answered(
        capsys, "--id", one["id"], searched.root, "--where", "language=de", "--where", "chars=60..90", "--limit", "30"
    )
    wanted = {row["id"] for row in rows(searched) if row["language"] == "de" and 60 <= row["chars"] <= 90}
    assert {each["id"] for each in found["documents"]} == wanted - {one["id"]}
    assert wanted


@needs_lance
def test_snapshots_that_the_store_does_not_have_yet_are_read(
    published: VectorRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    sync(published.root, RECIPE)
    published.publish(DAYS[2], texts(9, 15))
    one = next(iter(published.stored(DAYS[2]).values()))
    found = answered(capsys, "--id", one["id"], published.root, "--limit", "60")
    assert len(found["documents"]) == 54
    assert (found["in_table"], found["in_shards"], found["read"]) == (40, 15, list(DAYS[2:]))
    bounded = similar(published.root, RECIPE, Query(id=one["id"], most_bytes=1))
    assert (bounded.unread, bounded.in_shards) == (DAYS[2:], 0)
    assert not {each.snapshot for each in bounded.documents} & set(DAYS[2:])


def test_what_left_the_dataset_is_not_found(searched: VectorRoot, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = rows(searched)[0], rows(searched)[1]
    record(searched.root, [("doc", other["id"])], "a letter")
    version_log.retract(searched.root, RECIPE, DAYS[1])
    found = answered(capsys, "--id", one["id"], searched.root, "--limit", "60")
    assert {each["id"] for each in found["documents"]} == searched.stored(DAYS[0]).keys() - {one["id"], other["id"]}
    assert main(["look", "similar", "--id", other["id"], searched.root]) == RecipeError.exit_code
    assert other["id"] in capsys.readouterr().err


def test_vectors_of_another_model_are_not_compared_and_named(
    searched: VectorRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Path(static_folder(tmp_path / "other"))
    (other / "head.safetensors").unlink()
    searched.publish(DAYS[2], texts(0, 15), model=str(other))
    one = rows(searched)[0]
    found = answered(capsys, "--id", one["id"], searched.root, "--limit", "60", "--where", "snapshot<=2026-11-20")
    assert found["others"] in ([DAYS[2]], list(DAYS[:2]))
    assert {each["snapshot"] for each in found["documents"]}.isdisjoint(found["others"])
    recipe = recipe_file(tmp_path, embedding := static_folder(tmp_path / "third"))
    (Path(embedding) / "config.json").write_text('{"id2label": {"0": "x", "1": "y"}}')
    assert main(["look", "similar", "--text", "good road", searched.root, "--recipe", recipe]) == RecipeError.exit_code
    said = capsys.readouterr().err
    assert all(row["embedding_model"] in said for row in rows(searched))


@pytest.mark.parametrize(
    "words",
    [
        ("--id", "0" * 32),
        ("--id", "nothing"),
        ("--text", ""),
        ("--text", " \n"),
        ("--file", ""),
        ("--url", "https://nowhere.example/"),
        ("--file", "/nowhere"),
        ("--id", "0" * 32, "--where", "words=5"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(published: VectorRoot, words: tuple[str, ...]) -> None:
    assert main(["look", "similar", *words, published.root]) == RecipeError.exit_code


@pytest.mark.parametrize("option", ["--id", "--url", "--text", "--file"])
def test_nothing_to_compare_with_is_said(
    option: str, published: VectorRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["look", "similar", option, "", published.root]) == RecipeError.exit_code
    assert "name one of document, url, text, file" in capsys.readouterr().err
    both = ("--id", "0" * 32, "--url", "https://nowhere.example/")
    assert main(["look", "similar", *both, published.root]) == RecipeError.exit_code


def test_a_text_without_a_known_token_is_refused(published: VectorRoot, tmp_path: Path) -> None:
    recipe = recipe_file(tmp_path, published.model)
    assert main(["look", "similar", "--text", "unheard", published.root, "--recipe", recipe]) == RecipeError.exit_code


@needs_lance
def test_index_says_what_it_did_and_similar_what_it_compared(
    published: VectorRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    one = rows(published)[0]
    assert main(["look", "similar", "--id", one["id"], published.root]) == 0
    assert "40 documents of 2 snapshots without a store" in capsys.readouterr().out
    assert main(["keep", "index", published.root]) == 0
    assert "40 documents" in capsys.readouterr().out
    assert main(["look", "similar", "--id", one["id"], published.root]) == 0
    printed = capsys.readouterr().out
    assert "40 documents of the store" in printed
    assert one["url"] in printed
    assert one["text"] not in printed


@needs_lance
def test_a_root_without_vectors_has_nothing_to_index(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    assert main(["keep", "index", str(tmp_path / "root")]) == RecipeError.exit_code


@needs_lance
def test_takedown_and_retract_take_their_vectors_out_of_the_store(
    published: VectorRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["keep", "index", published.root]) == 0
    one = rows(published)[0]
    assert main(["takedown", published.root, "--doc", one["id"], "--reason", "a letter"]) == 0
    assert "39 documents in" in capsys.readouterr().out
    assert main(["retract", DAYS[1], published.root]) == 0
    assert "19 documents in" in capsys.readouterr().out
    files = [path.read_bytes() for path in Path(published.root, "vectors").rglob("*") if path.is_file()]
    assert files
    assert not [body for body in files if one["embedding"] in body]


@needs_lance
def test_a_vacuum_leaves_the_store_alone(published: VectorRoot) -> None:
    sync(published.root, RECIPE)
    before = sorted(Path(published.root, "vectors").rglob("*"))
    orphans = find_orphans(published.root, -3600.0, 1.0)
    assert not [entry.path for entry, _ in orphans.files if entry.path.startswith("vectors/")]
    assert orphans.kept >= sum(path.stat().st_size for path in before if path.is_file()) > 0
