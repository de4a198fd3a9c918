"""Records are counted before a snapshot lands: exactly in small files and Parquet, from the beginning of large ones."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.landing.record_counts import FILES, READ, counted_records
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.run.sizes import sizes_of
from tests.archives import http, response, zipped


def lines(records: int, chars: int = 60) -> bytes:
    return b"".join(json.dumps({"text": f"{at} " + "w" * chars}).encode() + b"\n" for at in range(records))


def parquet(records: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": [f"text {at}" for at in range(records)]}), sink)
    return sink.getvalue().to_pybytes()


def pages(records: int) -> bytes:
    body = http(b"<html><body><p>The ferry leaves the harbor.</p></body></html>")
    return b"".join(zipped([response(f"https://a.example/{at}", body) for at in range(records)]))


def foretold(folder: Path) -> int:
    return sizes_of(load_recipe("web"), list_snapshot(str(folder)), str(folder)).records


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a.jsonl", lines(50)),
        ("a.jsonl.gz", gzip.compress(lines(50))),
        ("a.jsonl.zst", zstandard.compress(lines(50))),
        ("a.json", lines(50)),
        ("a.parquet", parquet(50)),
        ("a.warc.gz", pages(50)),
        ("large.parquet", parquet(50_000)),
    ],
)
def test_records_of_small_files_and_of_parquet_are_exact(name: str, body: bytes, tmp_path: Path) -> None:
    """50 lines of JSON in 4 kB were about 0 records: as many as pages of the crawl that the costs were measured with."""
    (tmp_path / name).write_bytes(body)
    assert foretold(tmp_path) == (50_000 if "large" in name else 50)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_records_of_a_large_file_are_foretold_from_its_beginning(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    draws = Random(3)
    texts = (json.dumps({"text": draws.randbytes(50).hex()}) for _ in range(60_000))
    body = pack("\n".join(texts).encode())
    assert len(body) > 2 * READ
    (tmp_path / "a.jsonl.gz").write_bytes(body)
    assert foretold(tmp_path) == pytest.approx(60_000, rel=0.05)


def test_files_that_are_not_read_are_as_dense_as_those_of_their_kind(tmp_path: Path) -> None:
    for at in range(3 * FILES):
        (tmp_path / f"{at:03}.jsonl").write_bytes(lines(40))
    assert foretold(tmp_path) == pytest.approx(3 * FILES * 40, rel=0.02)
    read = list(counted_records(str(tmp_path), [(path.name, 1) for path in sorted(tmp_path.iterdir())]))
    assert len(read) == FILES


def test_what_cannot_be_read_counts_as_before(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + b"\0" * 21_676)
    assert foretold(tmp_path) == 10
