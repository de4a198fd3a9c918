"""A cache gives the rows that a state made of a text, from its newest segments, and no run fails for what is in it."""

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.run.tasks import row_cache
from pipeline_tasks.run.tasks.row_cache import NEWEST, CachedRows, KnownRows, cache_of, known_segments
from pipeline_tasks.text.base.hashed import text_keys

PREFIX = cache_of("score_quality", "scores")

BY_KEY = sorted((f"text {at}" for at in range(2000)), key=lambda text: text_keys(pa.array([text]))[0].as_py())
TEXTS = dict(zip("abcdefghijklmnopqrstuvwxyz", BY_KEY[:: len(BY_KEY) // 25 - 1], strict=False))
"""Texts by letters: their keys are in the order of the letters."""


def texts_of(names: Sequence[str | None]) -> pa.Array:
    return pa.array([TEXTS.get(name, name) if name else None for name in names], pa.string())


def key_of(name: str) -> str:
    return str(text_keys(texts_of([name]))[0].as_py())


def batch(names: Sequence[str | None], score: float = 0.5) -> pa.RecordBatch:
    columns = {"id": ["the same"] * len(names), "score": [score] * len(names), "text": texts_of(names)}
    return pa.record_batch(columns)


def store(root: Path, *batches: pa.RecordBatch, at: int) -> None:
    """Add a segment to the cache, and set its time."""
    before = set(root.rglob("*.json"))
    cached = CachedRows(str(root), PREFIX, ["score"], KnownRows(str(root), ()), "cpu")
    for rows in batches:
        cached.add(rows)
    cached.store()
    for path in set(root.rglob("*.json")) - before:
        os.utime(path, (at, at))


def known(root: Path) -> KnownRows:
    return KnownRows(str(root), known_segments(str(root), PREFIX))


def found(rows: KnownRows, names: Sequence[str | None]) -> dict[str | None, float]:
    """Return the scores of the texts that are known; rows come in the order of the texts."""
    table = rows.rows(texts_of(names))
    assert table.schema.names[0] == "known"
    assert table.num_rows == len(names)
    if "score" not in table.schema.names:
        assert not any(table["known"].to_pylist())
        return {}
    assert table.schema.names == ["known", "score"]
    each = zip(names, table["known"].to_pylist(), table["score"].to_pylist(), strict=True)
    return {name: score for name, is_known, score in each if is_known}


def test_rows_that_were_added_are_known_by_their_text(tmp_path: Path) -> None:
    store(tmp_path, batch(["b", "a", None, "c"]), batch(["a", "e"], 0.7), at=1)
    rows = known(tmp_path)
    assert found(rows, ["c", "x", "a", None, "a"]) == {"a": 0.5, "c": 0.5}
    assert found(rows, ["e"]) == {"e": 0.7}
    assert found(rows, ["d"]) == found(rows, []) == found(rows, [None]) == {}


def test_the_newest_segment_that_has_a_text_is_taken_and_older_ones_have_the_rest(tmp_path: Path) -> None:
    store(tmp_path, batch(["a", "b", "z"], 0.1), at=100)
    store(tmp_path, batch(["b", "c"], 0.3), at=300)
    store(tmp_path, batch(["b", "d"], 0.2), at=200)
    assert len(known_segments(str(tmp_path), PREFIX)) == 3
    assert found(known(tmp_path), ["a", "b", "c", "d", "e"]) == {"a": 0.1, "b": 0.3, "c": 0.3, "d": 0.2}


def test_a_segment_whose_keys_are_all_others_is_not_read(tmp_path: Path) -> None:
    for at, names in enumerate((["a", "c"], ["c", "e"], ["e", "g"])):
        store(tmp_path, batch(names), at=at)
    rows = known(tmp_path)
    for path in tmp_path.rglob(f"{key_of('e')}-{key_of('g')}-*.json"):
        path.unlink()
    assert found(rows, ["c", "d"]) == {"c": 0.5}
    assert found(rows, ["c", "e"]) == {"c": 0.5, "e": 0.5}


def test_the_first_and_the_last_key_of_a_segment_are_known_too(tmp_path: Path) -> None:
    store(tmp_path, batch(["m", "p"]), at=1)
    assert found(known(tmp_path), ["a", "m"]) == {"m": 0.5}
    assert found(known(tmp_path), ["p", "z"]) == {"p": 0.5}


def test_a_text_is_looked_up_in_so_many_segments_and_no_more(tmp_path: Path) -> None:
    store(tmp_path, batch(["a", "first", "z"]), at=1)
    for number in range(2, NEWEST + 1):
        store(tmp_path, batch(["a", f"number {number}", "z"]), at=number)
    assert found(known(tmp_path), ["first"]) == {"first": 0.5}
    store(tmp_path, batch(["a", "last", "z"]), at=NEWEST + 1)
    assert found(known(tmp_path), ["first", "last"]) == {"last": 0.5}


def test_the_same_rows_are_stored_once_and_none_not_at_all(tmp_path: Path) -> None:
    store(tmp_path, at=1)
    store(tmp_path, batch([None]), at=1)
    assert known_segments(str(tmp_path), PREFIX) == ()
    store(tmp_path, batch(["a", "b"]), at=1)
    store(tmp_path, batch(["b"]), batch(["a"]), at=2)
    assert len(known_segments(str(tmp_path), PREFIX)) == 1


@pytest.mark.parametrize("damage", ["cut", "empty", "gone", "without its segment", "another object"])
def test_what_cannot_be_read_is_not_known_and_the_log_says_so(
    tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: list[str] = []  # by the call itself: other tests configure the logger, its handlers and its level
    monkeypatch.setattr(row_cache.log, "warning", lambda _, *said: named.append(said[1]))
    store(tmp_path, batch(["a", "b"], 0.1), at=1)
    store(tmp_path, batch(["b", "c"], 0.2), at=2)
    paths = known_segments(str(tmp_path), PREFIX)
    newest = tmp_path / paths[0]
    if damage == "cut":
        newest.write_bytes(newest.read_bytes()[:-9])
    elif damage == "empty":
        newest.write_bytes(b"")
    elif damage == "gone":
        newest.unlink()
    elif damage == "without its segment":
        for path in tmp_path.rglob(f"{newest.name.split('-')[2].partition('.')[0]}*.segment"):
            path.unlink()
    else:
        newest.write_bytes(b"[]")
    rows = KnownRows(str(tmp_path), paths)
    for _ in range(2):
        assert found(rows, ["b", "c"]) == {"b": 0.1}
    assert named == [paths[0]]


def test_a_killed_writer_leaves_nothing_that_is_looked_up(tmp_path: Path) -> None:
    store(tmp_path, batch(["a"]), at=1)
    (path,) = known_segments(str(tmp_path), PREFIX)
    (tmp_path / path).write_bytes(b"")
    assert known_segments(str(tmp_path), PREFIX) == ()
