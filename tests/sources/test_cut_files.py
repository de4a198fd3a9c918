"""`refinery look cut` lists the files that were cut, and `refinery pull addresses` takes the list."""

import json
from pathlib import Path

import pytest
from refinery_sources.addresses.listed import addresses_in

from pipeline_tasks import api
from pipeline_tasks.cli.main import main
from tests.archives import http, response, zipped

TEXT = " ".join(f"Sentence number {number} is one of the plain sentences of this text." for number in range(9))
STAGES = ("ingest", "extract", "dedup_exact")


def page(name: str, text: str = TEXT) -> bytes:
    return http(f"<html><title>{name}</title><body><p>{name} {text}</p></body></html>".encode())


RECORDS = {
    "whole": (page("whole"), ""),
    "long": (page("long"), "length"),
    "twin": (page("twin"), "time"),
    "short": (page("short", "."), "disconnect"),
    "image": (http(b"\x89PNG\r\n\x1a\n" + bytes(200), headers="Content-Type: image/png"), "length"),
    "gone": (http(b"", "404 Not Found"), ""),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("cut")
    cuts = {name: {"WARC_Truncated": why} if why else {} for name, (_, why) in RECORDS.items()}
    archive = zipped([response(f"https://{name}.org/", body, **cuts[name]) for name, (body, _) in RECORDS.items()])
    (folder / "crawl").mkdir()
    (folder / "crawl" / "a.warc.gz").write_bytes(b"".join(archive))
    override = dict.fromkeys((*STAGES, "publish"), "-")
    api.refine(folder / "crawl", folder / "root", api.recipe(STAGES, "mine"), snapshot="monday", override=override)
    return str(folder / "root")


def test_each_cut_file_is_listed_with_its_size_and_why(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", "cut", root]) == 0
    printed = capsys.readouterr()
    head, *lines = [line.split("\t") for line in printed.out.splitlines()]
    assert head == ["url", "bytes", "why", "type", "became"]
    assert [(url, why, kind, became) for url, _, why, kind, became in lines] == [
        ("https://image.org/", "length", "", "ingest:not_html"),
        ("https://long.org/", "length", "html", "kept"),
        ("https://short.org/", "disconnect", "html", "extract:too_short"),
        ("https://twin.org/", "time", "html", "kept"),
    ]
    assert all(int(size) > 100 for _, size, *_ in lines)
    assert "4 files" in printed.err
    assert "(length 2, " in printed.err


def test_a_pull_takes_the_list_as_it_is_printed(root: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["look", "cut", root])
    table = capsys.readouterr().out
    main(["look", "cut", root, "--json"])
    listed = capsys.readouterr().out
    assert addresses_in(table.encode(), "") == addresses_in(listed.encode(), "")
    assert len(json.loads(listed)) == len(addresses_in(listed.encode(), "")) == 4
    (tmp_path / "cut.tsv").write_text(table)
    assert (
        main(["pull", "addresses", "--list", str(tmp_path / "cut.tsv"), "--to", str(tmp_path / "to"), "--dry-run"]) == 0
    )
