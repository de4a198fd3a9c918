"""Five documents of a draw are four of a group and one of another, answers are stored once each, and are counted."""

import io
import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from refinery_study.intruder.answers import INTRUDERS, answers, found, save
from refinery_study.intruder.drawing import Population, draw, population, schema_of
from refinery_study.intruder.groups import Grouping, groupable, grouping
from refinery_study.read.sample import read_drawn

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.publish.logs.version_log import Version
from tests.intruder_root import DAY, RECIPE, TOPICS, WORDS, build


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Version]:
    root = tmp_path_factory.mktemp("root")
    return str(root), build(root)


def documents_by(made: tuple[str, Version], by: str) -> Population:
    return population(*made, grouping(by, schema_of(*made)))


def topic_of(text: str) -> str:
    return next(name for name in TOPICS if text.startswith(WORDS[name]))


def test_four_documents_are_of_the_group_and_the_fifth_is_foreign_in_one_language(made: tuple[str, Version]) -> None:
    documents = documents_by(made, "topic")
    places, pairs = Counter[int](), Counter[tuple[str, str]]()
    for seed in range(60):
        drawn = draw(documents, seed)
        read = read_drawn(*made, drawn.documents)
        assert tuple(document.id for document in read) == drawn.ids
        topics = [topic_of(document.text) for document in read]
        assert topics[drawn.place] == drawn.other != drawn.group
        assert [topic for at, topic in enumerate(topics) if at != drawn.place] == [drawn.group] * 4
        assert {document.language for document in read} == {drawn.language}
        assert len(set(drawn.ids)) == 5
        places[drawn.place] += 1
        pairs[drawn.group, drawn.other] += 1
        assert draw(documents, seed) == drawn
    assert set(places) == set(range(5))
    assert len(pairs) == 6


def test_a_draw_is_of_the_documents_and_not_of_their_shards(made: tuple[str, Version], tmp_path: Path) -> None:
    again = build(tmp_path / "again")
    other = population(str(tmp_path / "again"), again, grouping("level/3", schema_of(str(tmp_path / "again"), again)))
    assert [draw(other, seed).ids for seed in range(9)] == [
        draw(documents_by(made, "level/3"), seed).ids for seed in range(9)
    ]


def test_bands_of_a_number_have_about_as_many_documents(made: tuple[str, Version]) -> None:
    documents = documents_by(made, "level")
    assert documents.by == "level/5"
    assert documents.names == [f"{band} of 5" for band in range(1, 6)]
    sizes = Counter(documents.groups.tolist())
    assert sizes.pop(None) == 1, "a document without a level is in no band"
    assert max(sizes.values()) - min(sizes.values()) <= 1
    top = draw(documents, 1, "5 of 5")
    assert top.group == "5 of 5"
    numbers = [int(document.text.split("number ")[1].split()[0]) for document in read_drawn(*made, top.documents)]
    assert [number >= 48 for number in numbers].count(True) == 4


def test_whole_numbers_are_values_and_a_language_is_no_bound_of_itself(made: tuple[str, Version]) -> None:
    assert documents_by(made, "cluster").names == ["0", "1", "2", "3"]
    assert documents_by(made, "cluster/2").names == ["1 of 2", "2 of 2"]
    languages = documents_by(made, "language")
    assert languages.names == ["de", "en"]
    assert {draw(languages, seed).group for seed in range(9)} == {"de", "en"}


def test_any_function_of_stored_columns_is_a_grouping(made: tuple[str, Version]) -> None:
    """A grouping is a name, its columns, and what it makes of them: here two columns together."""

    def both(table: pa.Table) -> pa.Array:
        pairs = zip(table.column("topic").to_pylist(), table.column("cluster").to_pylist(), strict=True)
        return pa.array([None if topic is None else f"{topic}, {cluster % 2}" for topic, cluster in pairs])

    documents = population(*made, Grouping("topic and cluster", ("topic", "cluster"), both))
    assert len(documents.names) == 6


@pytest.mark.parametrize(
    ("by", "named"),
    [
        ("topics", "'topics'"),
        ("url", "'url'"),
        ("tags", "'tags'"),
        ("topic/5", "COLUMN/BANDS"),
        ("level/1", "2 to 100"),
        ("level/many", "2 to 100"),
        ("source", "no group has four"),
    ],
)
def test_what_groups_nothing_is_refused(made: tuple[str, Version], by: str, named: str) -> None:
    with pytest.raises(RecipeError, match=named):
        documents_by(made, by)


def test_groups_are_named_by_columns_of_words_and_numbers(made: tuple[str, Version]) -> None:
    known = set(groupable(schema_of(*made)))
    assert {"topic", "level", "cluster", "language", "source", "chars"} <= known
    assert not known & {"id", "text", "url", "title", "tags", "offset"}
    with pytest.raises(RecipeError, match="it has bread, law, sea"):
        draw(documents_by(made, "topic"), 1, "rain")


# --- Answers ------------------------------------------------------------------------------------------------------------


def test_answers_given_at_one_time_are_all_kept_and_the_first_of_a_reader_counts(
    any_root: str, made: tuple[str, Version]
) -> None:
    _, version = made
    documents = documents_by(made, "topic")
    drawn = [draw(documents, seed) for seed in range(3)]

    def give(at: int) -> Any:
        of = drawn[at % 3]
        return save(any_root, version, "topic", of, of.ids[at % 5], f"reader{at // 3}")

    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(give, range(30)))
    known = answers(any_root, RECIPE)
    assert sorted(known, key=str) == sorted(given, key=str)
    assert [answer.at for answer in known] == sorted(answer.at for answer in given)
    wrong = next(answer for answer in known if not answer.is_right)
    of = next(each for each in drawn if each.ids == wrong.ids)
    again = save(any_root, version, "topic", of, of.foreign, wrong.reader)
    assert again.is_right
    assert sorted(answers(any_root, RECIPE), key=str) == sorted(known, key=str)
    assert answers(any_root, RECIPE, "level/5") == []
    whole = found(known).whole
    assert (whole.judged, whole.good) == (3, pytest.approx(sum(answer.is_right for answer in given) / 10))
    assert sum(share.judged for share in found(known).groups) == 3
    assert found(known).agreement.documents == 3
    assert {share.name for share in found(known).readers} == {f"reader{at}" for at in range(10)}


def test_an_answer_that_was_changed_is_named(made: tuple[str, Version], tmp_path: Path) -> None:
    drawn = draw(documents_by(made, "topic"), 1)
    save(str(tmp_path), made[1], "topic", drawn, drawn.foreign, "ada")
    [path] = (tmp_path / INTRUDERS / RECIPE).iterdir()
    path.write_bytes(path.read_bytes().replace(b'"ada"', b'"eve"'))
    with pytest.raises(ContractError, match="its reader is asked again"):
        answers(str(tmp_path), RECIPE)


def test_the_command_asks_tells_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path / "root")
    version = build(tmp_path / "root")
    documents = population(root, version, grouping("topic", schema_of(root, version)))
    first, third = draw(documents, 1), draw(documents, 3)
    named = ["look", "intruder", root, "--recipe", RECIPE, "--snapshot", DAY, "--by", "topic", "--reader", "ada"]
    typed = f"{first.place + 1}\nwhich?\ns\n{(third.place + 1) % 5 + 1}\nq\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert main([*named, "--json"]) == 0
    out, asked = capsys.readouterr()
    whole = json.loads(out)["whole"]
    assert (whole["draws"], whole["right"]) == (2, 1)
    assert whole["low"] < 0.2 < whole["high"]
    assert json.loads(out)["chance"] == 0.2
    assert f"right: {first.place + 1} is of {first.other}, the others are of {first.group} (topic)" in asked
    assert "wrong: " in asked
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert main([*named, "--draws", "1"]) == 0
    assert "=== draw 1" not in capsys.readouterr()[1], "a draw that a reader has answered is not asked again"
    assert main([*named, "--summary"]) == 0
    assert "by chance 20%" in capsys.readouterr()[0]
