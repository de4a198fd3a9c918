"""A traced token names its record while that is still there, and the command that lists what was replaced."""

import gzip
import hashlib
import json
import random
import re
import shlex
from pathlib import Path

import pytest
import zstandard
from tokenizers import Tokenizer, models, pre_tokenizers

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.document.trace import landed_header, trace, trace_lines
from pipeline_tasks.inspect.verify.verification import verify
from pipeline_tasks.landing.decompression import PlainSource
from tests.archives import http, lz4, read, response, zipped
from tests.chain import How, build_of, built, refined
from tests.sentence_piece import trained_model

pytestmark = pytest.mark.slow


TEXT = "Write to jane.doe@example.org about the ferry that leaves the harbor every morning before the fog has lifted."


def test_a_model_of_sentencepiece_is_pinned_exported_and_decodes_a_trace(tmp_path: Path) -> None:
    day = tmp_path / "2026-11-20"
    day.mkdir()
    page = http(f"<html><body><article><p>{TEXT}</p></article></body></html>".encode())
    (day / "a.warc.gz").write_bytes(b"".join(zipped([response("https://example.org/", page)])))
    model = trained_model([TEXT] * 20, byte_fallback=True, normalization_rule_name="identity")
    (tmp_path / "otter.model").write_bytes(model)
    stages = {
        "ingest": {},
        "extract": {"min_chars": 20},
    }
    (tmp_path / "traced.yaml").write_text(json.dumps({"name": "traced", "stages": stages}))
    chain = refined(str(tmp_path / "root"), str(day), How(str(tmp_path / "traced.yaml")))
    dataset = built(chain.root, build_of("traced", {"tokenizer": str(tmp_path / "otter.model"), "bos": "<s>"}, 16))
    digest = hashlib.sha256(model).hexdigest()
    pinned = Path(chain.root, "tokenizers", "corpus", f"{digest}.model")
    assert pinned.read_bytes() == Path(chain.root, dataset.prefix, "tokenizer.model").read_bytes() == model
    assert dataset.tokenizer == digest
    assert "<s>Write to jane.doe" in "\n".join(trace_lines(trace(chain.root, dataset, 1)))
    assert verify(chain.root).findings.problems == []
    pinned.write_bytes(b"changed")
    problem = verify(chain.root).findings.problems[0]
    assert problem.object == str(pinned)
    assert problem.heal == f"copy {chain.root}/{dataset.prefix}/tokenizer.model there"


def test_a_trace_names_redactions_and_does_without_the_landed_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = tmp_path / "2026-11-20"
    day.mkdir()
    text = (
        "Write to jane.doe@example.org about the ferry that leaves the harbor every morning before the fog has lifted."
    )
    page = http(f"<html><body><article><p>{text}</p></article></body></html>".encode())
    (day / "a.warc.gz").write_bytes(b"".join(zipped([response("https://example.org/", page)])))
    tokenizer = Tokenizer(models.WordLevel({"</s>": 0, "?": 1, "the": 2}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    stages = {
        "ingest": {},
        "extract": {"min_chars": 20},
        "filter_language": {"keep": [], "threshold": 0},
        "scrub_pii": {},
    }
    (tmp_path / "traced.yaml").write_text(json.dumps({"name": "traced", "stages": stages}))
    chain = refined(str(tmp_path / "root"), str(day), How(str(tmp_path / "traced.yaml")))
    dataset = built(chain.root, build_of("traced", {"tokenizer": str(tmp_path / "tokenizer.json")}, 16))
    found = trace(chain.root, dataset, 0)
    assert "WARC/1" in found.header[0]
    assert f"redactions {found.redactions}" in list(trace_lines(found))
    assert main(shlex.split(found.redactions)[1:]) == 0
    assert "email                    1  redact" in capsys.readouterr().out
    (day / "a.warc.gz").unlink()
    assert trace(chain.root, dataset, 0).header == ("the landed file is not there any more",)


URLS = [f"https://example.org/{number}" for number in range(5)]
RECORDS = [response(url) for url in URLS]
ARC = [b"https://example.org/%d 1.2.3.4 20261120000000 text/html %d\n%s\n" % (n, len(http()), http()) for n in range(5)]
LANDED = {
    "members.warc.gz": b"".join(zipped(RECORDS)),
    "whole.warc.gz": gzip.compress(b"".join(RECORDS)),
    "mixed.warc.gz": b"".join([*zipped(RECORDS[:2]), gzip.compress(b"".join(RECORDS[2:]))]),
    "plain.warc": b"".join(RECORDS),
    "frames.warc.zst": b"".join(map(zstandard.compress, RECORDS)),
    "frames.warc.lz4": lz4(b"".join(RECORDS)),
    "plain.arc": b"".join(ARC),
    "members.arc.gz": b"".join(zipped(ARC)),
    "lower.warc": b"".join(record.replace(b"WARC/1.0", b"warc/1.0", 1) for record in RECORDS),
}


@pytest.mark.parametrize("name", LANDED)
def test_every_record_is_found_again_where_its_row_says(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(LANDED[name])
    rows = read(LANDED[name], name)
    assert [row["url"] for row in rows] == URLS
    for row in rows:
        assert f"WARC-Target-URI: {row['url']}" in list(landed_header(str(tmp_path), row))
    (tmp_path / name).write_bytes(LANDED["members.warc.gz"].replace(zipped(RECORDS)[-1], b""))
    with pytest.raises(ContractError, match=re.escape(f"{tmp_path / name} ") + f".* {rows[-1]['offset']}"):
        list(landed_header(str(tmp_path), rows[-1]))


def test_a_record_far_behind_in_a_file_that_is_compressed_as_a_whole_is_not_read_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page decompressed the whole file for the header of one record."""
    noise = random.Random(7).randbytes(4 << 20)
    far = response("https://a.example.org/far", http(noise.hex().encode()))
    body = gzip.compress(b"".join([far, *RECORDS]))
    (tmp_path / "whole.warc.gz").write_bytes(body)
    first, *_, last = read(body, "whole.warc.gz")
    consumed: list[int] = []
    plain = PlainSource.read

    def counting(source: PlainSource, size: int) -> bytes:
        part = plain(source, size)
        consumed.append(len(part))
        return part

    monkeypatch.setattr(PlainSource, "read", counting)
    [line] = landed_header(str(tmp_path), last, 1 << 20)
    assert f"{last['offset']:,} bytes of whole.warc.gz" in line
    assert sum(consumed) < len(body) / 2
    assert f"WARC-Target-URI: {first['url']}" in list(landed_header(str(tmp_path), first, 1 << 20))
    assert f"WARC-Target-URI: {last['url']}" in list(landed_header(str(tmp_path), last, last["offset"]))
