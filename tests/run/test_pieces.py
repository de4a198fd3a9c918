"""A large landed file in pieces: the same rows, documents and tokens as from the whole file, on every engine."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.commands.retract import landed
from pipeline_tasks.errors import DigestMismatch
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.landing import cuts
from pipeline_tasks.manifest import dump, load
from pipeline_tasks.sealed import path_of
from pipeline_tasks.stage import WHOLE
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests.archives import http, response, zipped
from tests.chain import Chain, How, refined, reply

PIECE = 4000
RECIPE = """
name: pieces
stages:
  ingest: {}
  extract: {min_chars: 20}
  dedup_exact: {}
run: {error_budget: {share: 1, rows: 100}}
"""


def page(number: int) -> bytes:
    text = f"<p>Ferry number {number} leaves the harbor every morning before the fog has lifted from the water.</p>"
    return response(f"https://example.org/{number}", http(f"<html><body>{text * 3}</body></html>".encode()))


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    folder = tmp_path / "2026-11-20"
    folder.mkdir()
    large = zipped([page(number) for number in range(120)])
    large[60] = large[60][:-12]  # damage in the middle
    (folder / "large.warc.gz").write_bytes(b"".join(large))
    for number in range(3):
        (folder / f"small{number}.warc.gz").write_bytes(zipped([page(200 + number)])[0])
    lines = [json.dumps({"text": f"Line {number} of a text that is long enough to stay."}) for number in range(5)]
    (folder / "more.jsonl.warc").write_text("\n".join(lines))
    (tmp_path / "pieces.yaml").write_text(RECIPE)
    return folder


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "LEAST", PIECE)
    monkeypatch.setattr(cuts, "MOST", PIECE)
    monkeypatch.setattr(cuts, "REACH", 0)


def chain(tmp_path: Path, crawl: Path, name: str, **how: Any) -> Chain:
    return refined(str(tmp_path / name), str(crawl), How(recipe=str(tmp_path / "pieces.yaml"), **how))


def rows(chain: Chain, stage: str, part: str = "shards") -> list[str]:
    """Return rows as sorted JSON."""
    found = [
        row for batch in read_shards(chain.root, getattr(chain.manifest(stage), part)) for row in batch.to_pylist()
    ]
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in found)


def digests(chain: Chain, stage: str) -> list[str]:
    return [shard.digest for shard in chain.manifest(stage).shards]


def test_pieces_give_the_documents_of_the_whole_file(
    tmp_path: Path, crawl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = chain(tmp_path, crawl, "whole")
    for name, value in (("LEAST", PIECE), ("MOST", PIECE), ("REACH", 0)):
        monkeypatch.setattr(cuts, name, value)
    cut = chain(tmp_path, crawl, "cut")
    split = chain(tmp_path, crawl, "split", partitions=4)
    assert len([shard for shard in cut.manifest("land").shards if shard.start != WHOLE]) > 5
    for stage in ("ingest", "extract"):
        ours, theirs = cut.manifest(stage), whole.manifest(stage)
        assert (ours.rows_in, ours.rows, ours.rejected, ours.quarantined) == (
            theirs.rows_in,
            theirs.rows,
            theirs.rejected,
            theirs.quarantined,
        )
        assert rows(cut, stage, "quarantine") == rows(whole, stage, "quarantine")
    assert sum(cut.manifest("ingest").quarantined.values()) == 1
    assert rows(cut, "extract") == rows(whole, "extract")
    assert digests(cut, "dedup_exact") == digests(whole, "dedup_exact")
    assert split.version.manifests == cut.version.manifests


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("spark", marks=pytest.mark.nightly), "ray"])
def test_engines_read_pieces_into_the_same_bytes(
    name: str, small_pieces: None, tmp_path: Path, crawl: Path, request: pytest.FixtureRequest
) -> None:
    here = chain(tmp_path, crawl, "here")
    there = chain(tmp_path, crawl, "there", on=name, address=request.getfixturevalue(name))
    assert here.version.manifests == there.version.manifests


def test_pieces_are_verified_and_retracted_as_one_file(small_pieces: None, tmp_path: Path, crawl: Path) -> None:
    cut = chain(tmp_path, crawl, "cut")
    assert verify(cut.root, Scope(full=True)).findings.problems == []
    assert landed(cut.root, cut.version) == str(crawl)
    large = crawl / "large.warc.gz"
    body = bytearray(large.read_bytes())
    body[-20] ^= 1
    large.write_bytes(body)
    (problem,) = verify(cut.root, Scope(full=True)).findings.problems
    assert (problem.object, problem.problem) == (str(large), "its bytes were changed")
    large.write_bytes(body + b"more")
    assert "has another size" in str(verify(cut.root).findings.problems[0])


def test_a_changed_piece_is_named_and_nothing_is_read_from_it(small_pieces: None, tmp_path: Path, crawl: Path) -> None:
    root = str(tmp_path / "root")
    first = reply("land", root=root, input=str(crawl))["manifest"]
    large = crawl / "large.warc.gz"
    body = bytearray(large.read_bytes())
    body[len(body) // 2] ^= 1
    large.write_bytes(body)
    with pytest.raises(DigestMismatch, match=re.escape(f"{large}: ")):
        reply("refine", root=root, stage="ingest", params={}, parent=first, landing=str(crawl))


def test_a_manifest_of_pieces_says_where_they_begin(small_pieces: None, tmp_path: Path, crawl: Path) -> None:
    root = str(tmp_path / "root")
    landed = reply("land", root=root, input=str(crawl))
    assert landed["files"] == 5
    manifest = read_manifest(root, landed["manifest"])
    starts = [shard.start for shard in manifest.shards if shard.start != WHOLE]
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    assert load(dump(manifest)) == manifest
    raw = json.loads((Path(root) / path_of(landed["manifest"])).read_bytes())
    assert sum("start" in shard for shard in raw["shards"]) == len(starts)
    names = reply("spans", root=root, parent=landed["manifest"], stage="ingest", partitions=50)["names"]
    assert "large.warc.gz from byte 0" in names
    assert "small0.warc.gz" in names
