"""A list of addresses lands as archives: each is asked once, politely, and what does not answer is left out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from refinery_sources import web
from refinery_sources.addresses.listed import addresses_in
from refinery_sources.source import Source
from refinery_sources.testing import check_source

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, RecipeError
from tests.sources.api_server import Api, Asked, Reply, serving
from tests.sources.pulling import promise_of, pull_source, query_of, records_of

PDF = b"%PDF-1.7\n" + bytes(500)
ROBOTS = b"User-agent: refinery-pull\nDisallow: /closed/\n"


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as api:
        api.reply = answer
        yield api


def answer(asked: Asked) -> Reply:
    found = {"/robots.txt": ROBOTS, "/a.pdf": PDF, "/closed/b.pdf": PDF, "/large": bytes(5000)}
    if asked.path == "/list":
        return Reply("\n".join(asked.params["of"].split(",")).encode())
    if asked.path in found:
        return Reply(found[asked.path], (("Content-Type", "application/pdf"),))
    return Reply(b"not here", status=404)


def listing(api: Api, *urls: str) -> dict[str, Any]:
    """A query of a list that is at the server: one at another place may name no host of this machine."""
    return {"addresses": {"list": f"{api.address}/list?of={','.join(urls)}", "max_bytes": 4000}}


def urls_of(api: Api) -> list[str]:
    return [f"{api.address}{path}" for path in ("/a.pdf?page=1", "/closed/b.pdf", "/gone", "/large")]


def left_out(place: Path) -> Any:
    return promise_of(place)["source"]["facts"]["part-00000.warc.gz"]["left_out"]


def test_answers_land_as_a_crawler_keeps_them(api: Api, tmp_path: Path) -> None:
    place, landed = pull_source(listing(api, *urls_of(api), "ftp://example.org/c"), tmp_path / "landings", name="again")
    assert landed.files == 1
    records = {record["url"]: record for record in records_of(place)}
    assert {url: record["status"] for url, record in records.items()} == {urls_of(api)[0]: 200, urls_of(api)[2]: 404}
    first = records[urls_of(api)[0]]
    assert (first["payload"], first["content_type"], first["error"]) == (PDF, "application/pdf", None)
    assert left_out(place) == {"no_address": 1, "robots": 1, "too_large": 1}


def test_robots_txt_is_read_once_and_no_address_is_asked_twice(api: Api, tmp_path: Path) -> None:
    pull_source(listing(api, *urls_of(api), *urls_of(api)), tmp_path / "landings", name="once")
    paths = [asked.path for asked in api.asked if asked.path != "/list"]
    assert sorted(paths) == ["/a.pdf", "/gone", "/large", "/robots.txt"]


def test_a_host_that_does_not_answer_holds_up_no_other(
    api: Api, closed_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "TRIES", 2)
    gone = [f"http://127.0.0.1:{closed_port}/{name}" for name in ("a", "b")]
    place, _ = pull_source(listing(api, *gone, urls_of(api)[0]), tmp_path / "landings", name="gone")
    assert [record["url"] for record in records_of(place)] == urls_of(api)[:1]
    assert left_out(place) == {"no_answer": 2}


def test_a_list_names_no_host_of_this_machine(api: Api, tmp_path: Path) -> None:
    """What a crawl has found are words of strangers."""
    (tmp_path / "list").write_text("\n".join([*urls_of(api), "http://169.254.169.254/latest/meta-data"]))
    _, landed = pull_source({"addresses": {"list": str(tmp_path / "list")}}, tmp_path / "landings", name="inside")
    assert (landed.files, api.asked) == (0, [])


@pytest.mark.parametrize(
    "body",
    [
        "url\tbytes\twhy\nhttps://b.org/\t9\tlength\nhttps://a.org/\t8\ttime\n",
        '[{"url": "https://a.org/", "bytes": 8}, {"url": "https://b.org/"}]',
        '{"url": "https://b.org/"}\n{"url": "https://a.org/"}\n',
        "https://a.org/\r\n\r\nhttps://b.org/\r\nhttps://a.org/",
    ],
)
def test_a_list_is_a_table_lines_or_json(body: str) -> None:
    assert addresses_in(body.encode(), "list") == ("https://a.org/", "https://b.org/")


@pytest.mark.parametrize("body", [b"", b"url\tbytes\n", b'[{"address": 1}]', b"[1]", b"\xff\xfe", b"[" * 9999])
def test_what_is_no_list_is_refused(body: bytes) -> None:
    with pytest.raises(ContractError, match="list is no list of addresses"):
        addresses_in(body, "list")


def test_it_keeps_what_every_source_promises(api: Api, tmp_path: Path) -> None:
    (tmp_path / "none").write_text("")
    cut: Source = query_of({"addresses": {"list": str(tmp_path / "none")}})
    check_source(query_of(listing(api, *urls_of(api))), cut)


def test_the_command_needs_a_list_and_a_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list").write_text(json.dumps([{"url": "http://127.0.0.1:9/a"}]))
    assert main(["pull", "addresses", "--to", str(tmp_path / "to")]) == RecipeError.exit_code
    assert "needs --list FILE" in capsys.readouterr().err
    named = ["--list", str(tmp_path / "list"), "--to", str(tmp_path / "to")]
    assert main(["pull", "addresses", *named, "--crawl", "latest"]) == RecipeError.exit_code
    assert main(["pull", "addresses", *named, "--dry-run"]) == 0
    assert "1 file" in capsys.readouterr().out
