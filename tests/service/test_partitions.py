"""A snapshot of which no row is kept seals the same bytes in partitions as in one piece."""

from pathlib import Path

from tests.chain import How, refined


def test_partitions_without_a_kept_row_seal_the_bytes_of_the_whole_run(tmp_path: Path) -> None:
    day = tmp_path / "2026-11-20"
    day.mkdir()
    (day / "pages.jsonl").write_text('{"url": "https://example.org/", "text": "short"}\n')
    recipe = tmp_path / "short.yaml"
    recipe.write_text("stages:\n  ingest: {}\n  extract: {min_chars: 100}\n  dedup_exact: {}\n  scrub_pii: {}\n")
    whole = refined(str(tmp_path / "whole"), str(day), How(recipe=str(recipe)))
    split = refined(str(tmp_path / "split"), str(day), How(recipe=str(recipe), partitions=3))
    assert whole.version.manifests == split.version.manifests
    assert whole.version.documents == 0
