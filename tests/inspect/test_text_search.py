"""A search lists each document whose text has the phrase, and says which rows it read."""

import json
from typing import Any

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.text_search import Bounds, Hit, TextSearch, search_lines, search_texts
from pipeline_tasks.publish import version_log
from pipeline_tasks.store.reading import read_shards
from tests import small_build
from tests.small_root import DAYS, RECIPE, SmallRoot


def rows(small: SmallRoot, stage: str, part: str) -> list[dict[str, Any]]:
    manifest = ordered_manifests(small.root, version_log.current(small.root, RECIPE, DAYS[0]))[stage]
    return [row for batch in read_shards(small.root, getattr(manifest, part)) for row in batch.to_pylist()]


def searched(small: SmallRoot, phrase: str, bounds: Bounds | None = None) -> TextSearch:
    return search_texts(small.root, version_log.current(small.root, RECIPE, DAYS[0]), phrase, bounds)


def texts(hits: tuple[Hit, ...]) -> list[str]:
    return [f"{hit.before}{hit.match}{hit.after}" for hit in hits]


def test_every_text_with_the_phrase_is_listed_with_what_became_of_it(small_root: SmallRoot) -> None:
    kept = rows(small_root, "dedup_minhash", "shards")
    phrase = " ".join(kept[0]["text"].split()[3:6])
    search = searched(small_root, phrase)
    assert search.is_whole
    duplicates = [row for row in rows(small_root, "dedup_exact", "rejects") if phrase in row["text"]]
    assert [(hit.id, hit.outcome) for hit in search.hits[:1]] == [(kept[0]["id"], "kept")]
    assert [(hit.id, hit.stage, hit.outcome, hit.reason) for hit in search.hits[1:]] == [
        (row["id"], "dedup_exact", "rejected", row["reason"]) for row in duplicates
    ]
    assert search.hits[0].match == phrase
    assert all(phrase in text for text in texts(search.hits))


def test_rejected_rows_are_searched_behind_kept_ones(small_root: SmallRoot) -> None:
    [short] = searched(small_root, "SHORT").hits
    [row] = rows(small_root, "extract", "rejects")
    assert (short.id, short.stage, short.reason, short.match) == (row["id"], "extract", row["reason"], "short")
    parts = searched(small_root, "no such words").parts
    assert [(part.outcome, part.stage) for part in parts] == [
        ("kept", "dedup_minhash"),
        ("rejected", "dedup_exact"),
        ("rejected", "extract"),
    ]
    assert sum(part.rows for part in parts) == sum(part.searched for part in parts) == 12


@pytest.mark.parametrize(("hits", "most_bytes"), [(1, 0), (3, 0), (0, 1), (2, 1)])
def test_bounded_searches_in_a_row_list_what_one_without_bounds_does(
    small_root: SmallRoot, hits: int, most_bytes: int
) -> None:
    whole, pieces, start = searched(small_root, "word"), [], 0
    while start < whole.rows:
        piece = searched(small_root, "word", Bounds(start, hits, most_bytes))
        assert (piece.start, start < piece.end) == (start, True)
        assert not hits or len(piece.hits) <= hits
        assert not piece.is_whole
        assert sum(part.searched for part in piece.parts) == piece.end - piece.start
        pieces += piece.hits
        start = piece.end
    assert tuple(pieces) == whole.hits
    assert searched(small_root, "word", Bounds(10**9)).hits == ()


def test_white_space_case_and_signs_of_a_phrase(small_root: SmallRoot) -> None:
    words = rows(small_root, "dedup_minhash", "shards")[0]["text"].split()
    plain = searched(small_root, f"{words[1]} {words[2]}").hits
    assert searched(small_root, f"  {words[1].upper()} \n\t{words[2]} ").hits == plain != ()
    for phrase in ("word.*", "(", "[a", "\\", "w{1,9}", "\\x{a0}", "word1|", "\udc80", "é", "$", "^"):
        assert searched(small_root, phrase).hits == (), "signs stand for themselves"
    with pytest.raises(RecipeError, match="phrase"):
        searched(small_root, " \n")


def test_a_build_is_not_searched(small_root: SmallRoot, tmp_path: Any) -> None:
    small = small_build.copied(small_root, tmp_path)
    small_build.build(small)
    version = version_log.current(small.root, small_build.DATASET)
    with pytest.raises(RecipeError, match=small_build.DATASET):
        search_texts(small.root, version, "word")


def test_the_command_prints_documents_and_no_text(small_root: SmallRoot, capsys: pytest.CaptureFixture[str]) -> None:
    text = rows(small_root, "dedup_minhash", "shards")[0]["text"]
    phrase = " ".join(text.split()[:4])
    version = ["--recipe", RECIPE, "--snapshot", DAYS[0]]
    assert main(["search", phrase, small_root.root, *version]) == 0
    printed = capsys.readouterr().out
    assert searched(small_root, phrase).hits[0].id in printed
    assert text.split()[5] not in printed
    assert main(["search", phrase, small_root.root, *version, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {"before", "match", "after"} & set(facts["hits"][0]) == set()
    lines = list(search_lines(searched(small_root, "word", Bounds(most_hits=2))))
    assert "rows were not searched" in lines[-1]
