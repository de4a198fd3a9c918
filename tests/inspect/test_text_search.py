"""A search lists each document whose text has the phrase, and says which rows it read."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.search import Bounds, Hit, TextSearch, search_lines, search_texts, search_urls
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_shards
from tests import described_root, small_build
from tests.inspect.test_breakdown import published as breakdown_root
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


def test_documents_are_found_by_their_columns_and_with_a_phrase(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    version = described_root.published(tmp_path)
    where = ["topic=t0001", "document_type=product"]
    [found] = search_texts(str(tmp_path), version, "", where=where).hits
    assert (found.url, found.match, found.before, found.outcome) == (described_root.URLS[1], "", "", "kept")
    assert search_texts(str(tmp_path), version, "no such phrase", where=where).hits == ()
    word = described_root.text_of("product").split()[0]
    [same] = search_texts(str(tmp_path), version, word, where=where).hits
    assert (same.id, same.match) == (found.id, word)
    assert len(search_urls(str(tmp_path), version, described_root.URLS[0], None, ["topic=t0001"]).hits) == 1
    assert search_urls(str(tmp_path), version, described_root.URLS[0], None, ["topic!=t0001"]).hits == ()
    with pytest.raises(RecipeError, match=r"'colour'.*document_type"):
        search_texts(str(tmp_path), version, "", where=["colour=red"])
    assert main(["search", "", str(tmp_path), "--where", where[0], "--where", where[1]]) == 0
    assert found.id in capsys.readouterr().out


def test_rows_that_were_rejected_before_a_column_was_written_do_not_meet_a_condition(tmp_path: Path) -> None:
    version = breakdown_root(tmp_path, enriched=True)
    found = search_texts(str(tmp_path), version, "", where=["document_type!=nothing"])
    assert [hit.outcome for hit in found.hits] == ["kept"] * 4
    assert found.is_whole
    assert len(search_texts(str(tmp_path), version, "", where=["language=en"]).hits) == 5


def test_find_lists_published_documents_by_their_columns_and_names_snapshots_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    described_root.published(tmp_path)
    assert main(["look", "find", str(tmp_path), "--where", "topic=t0001", "--where", "toxic_hits=0", "--json"]) == 0
    [facts] = json.loads(capsys.readouterr().out)
    assert [each["url"] for each in facts["found"]] == [*described_root.URLS[:2]]
    assert (facts["without"], facts["documents"]) == ([described_root.PLAIN], [5, 5])
    assert main(["look", "find", str(tmp_path), "--where", "topic=t0001", "--text", "Add to"]) == 0
    assert "where topic=t0001" in capsys.readouterr().out
    assert main(["look", "find", str(tmp_path), "--where", "colour=red"]) == RecipeError.exit_code
    assert "topic_similarity" in capsys.readouterr().err
    assert (
        main(["look", "find", str(tmp_path), "--where", "topic=t0001", "--site", "shop.example"])
        == RecipeError.exit_code
    )
    assert "--where" in capsys.readouterr().err
