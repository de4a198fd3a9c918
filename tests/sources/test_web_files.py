"""Files of a folder of the web land by the list that names them, whole and as they were promised, or not at all."""

import bz2
import gzip
import hashlib
import json
import socketserver
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard
from refinery_sources.plan import plan
from refinery_sources.pull import Landed, Pull, landing_at
from refinery_sources.recipe import parse_source, resolved
from refinery_sources.web import PIECE

from pipeline_tasks.errors import ContractError, RecipeError, SnapshotIncomplete
from tests.crawl_mirror import Asked, Fault, Mirror
from tests.sources.pulling import (
    NOW,
    Killed,
    digests_of,
    killed_after,
    on_loopback,
    promise_of,
    pull_source,
    records_of,
)

PROSE = "The ferry leaves the harbor every morning before the fog has lifted from the water."


def lines(count: int, name: str = "a") -> bytes:
    return b"".join(b'{"text": "%s %s %d"}\n' % (PROSE.encode(), name.encode(), number) for number in range(count))


def promised(path: str, body: bytes, **other: Any) -> dict[str, Any]:
    return {"path": path, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest(), **other}


def serve(mirror: Mirror, **bodies: bytes) -> list[str]:
    """Put files below `/own/`, and return their paths."""
    paths = [name.replace("__", "/").replace("_", ".") for name in bodies]
    mirror.files |= {f"/own/{path}": body for path, body in zip(paths, bodies.values(), strict=True)}
    return paths


def promise(mirror: Mirror, *files: dict[str, Any]) -> None:
    mirror.files["/own/snapshot.json"] = json.dumps({"snapshot": "s", "files": files}).encode()


def serve_promised(mirror: Mirror, **bodies: bytes) -> list[str]:
    paths = serve(mirror, **bodies)
    promise(mirror, *(promised(path, body) for path, body in zip(paths, bodies.values(), strict=True)))
    return paths


def pull(mirror: Mirror, tmp_path: Path, place: str = "/own/", days: int = 0, **more: Any) -> tuple[Path, Landed]:
    on_bytes = more.pop("on_bytes", lambda _name, _size: None)
    query = {"place": f"{mirror.address}{place}", "format": "jsonl", **more}
    return pull_source({"files": query}, tmp_path / "landings", moment=NOW + timedelta(days=days), on_bytes=on_bytes)


def gets(mirror: Mirror, ending: str = "") -> list[Asked]:
    return [asked for asked in mirror.asked if asked.method == "GET" and asked.path.endswith(ending)]


def assert_nothing_landed(tmp_path: Path) -> None:
    assert not list((tmp_path / "landings").rglob("snapshot.json"))


def test_files_of_a_list_land_as_they_were_promised_and_once(mirror: Mirror, tmp_path: Path) -> None:
    bodies = {
        "a_jsonl": lines(3),
        "deep__b_jsonl_gz": gzip.compress(lines(2, "b")),
        "_hidden_jsonl": b"x",
        "c_csv": b"x",
    }
    serve_promised(mirror, **bodies)
    mirror.files["/own/50%25%20%23.jsonl"] = lines(1, "c")
    listed = json.loads(mirror.files["/own/snapshot.json"])["files"]
    promise(mirror, *listed, promised("50% #.jsonl", lines(1, "c")), promised("snapshot.json", b"{}"))
    landed, result = pull(mirror, tmp_path)
    assert sorted(file["path"] for file in promise_of(landed)["files"]) == ["50% #.jsonl", "a.jsonl", "deep/b.jsonl.gz"]
    assert (landed / "deep/b.jsonl.gz").read_bytes() == bodies["deep__b_jsonl_gz"]
    assert (result.files, len(records_of(landed)), landed.name) == (3, 6, "news-20260105T060000Z")
    mirror.asked.clear()
    again, found = pull(mirror, tmp_path, days=1)
    assert (again, found.is_new, [asked.path for asked in mirror.asked]) == (landed, False, ["/own/snapshot.json"])
    serve_promised(mirror, a_jsonl=lines(4))
    later, _ = pull(mirror, tmp_path, days=2)
    assert (later.name, len(records_of(later))) == ("news-20260107T060000Z", 4)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("lists/all.paths", b"own/a.jsonl\nown/b.jsonl\n"),
        ("lists/all.paths", b"own/a.jsonl\r\nown/b.jsonl"),
        ("lists/all.paths.gz", gzip.compress(b"own/a.jsonl\nown/b.jsonl\n")),
    ],
)
def test_files_of_a_list_of_paths_land(name: str, body: bytes, mirror: Mirror, tmp_path: Path) -> None:
    serve(mirror, a_jsonl=lines(3), b_jsonl=lines(2, "b"))
    mirror.files[f"/{name}"] = body
    landed, _ = pull(mirror, tmp_path, "", paths=name)
    assert digests_of(landed) == {
        f"own/{path}": hashlib.sha256(mirror.files[f"/own/{path}"]).hexdigest() for path in ("a.jsonl", "b.jsonl")
    }
    some, _ = pull(mirror, tmp_path, "", paths=name, exclude=["a.*"], days=1)
    assert list(digests_of(some)) == ["own/b.jsonl"]


def test_a_place_may_be_one_file_which_lands_again_once_it_has_changed(mirror: Mirror, tmp_path: Path) -> None:
    mirror.files["/own/a%20b.csv.gz"] = gzip.compress(f"body\n{PROSE}\n".encode())
    query = {"format": "csv", "fields": {"text": "body"}}
    landed, _ = pull(mirror, tmp_path, "/own/a%20b.csv.gz", **query)
    assert [file["path"] for file in promise_of(landed)["files"]] == ["a b.csv.gz.parquet"]
    assert [record["text"] for record in records_of(landed)] == [PROSE]
    assert pull(mirror, tmp_path, "/own/a%20b.csv.gz", days=1, **query)[0] == landed
    mirror.files["/own/a%20b.csv.gz"] = gzip.compress(f"body\n{PROSE[::-1]}\n".encode())
    assert pull(mirror, tmp_path, "/own/a%20b.csv.gz", days=1, **query)[0] != landed


def test_files_of_text_are_documents_that_are_known_by_their_addresses(mirror: Mirror, tmp_path: Path) -> None:
    serve_promised(mirror, a_txt=b"One", b_md_gz=gzip.compress(b"Two"), c_txt=b"\0")
    landed, _ = pull(mirror, tmp_path, format="text")
    read = {record["url"]: record["text"] for record in records_of(landed)}
    assert read == {f"{mirror.address}/own/a.txt": "One", f"{mirror.address}/own/b.md.gz": "Two"}
    assert promise_of(landed)["source"]["facts"] == {"part-00000.parquet": {"left_out": {"binary": 1}}}


def test_bzip2_lands_unpacked(mirror: Mirror, tmp_path: Path) -> None:
    serve_promised(mirror, a_jsonl_bz2=bz2.compress(lines(3)))
    landed, _ = pull(mirror, tmp_path)
    assert digests_of(landed) == {"a.jsonl": hashlib.sha256(lines(3)).hexdigest()}


def test_a_plan_has_the_sizes_of_files_that_no_list_promises(mirror: Mirror, tmp_path: Path) -> None:
    paths = serve(mirror, a_jsonl=lines(3), b_jsonl=lines(3))
    mirror.files["/own/paths"] = "\n".join(paths).encode()
    query = {"place": f"{mirror.address}/own/", "format": "jsonl", "paths": "paths"}
    recipe = parse_source({"source": {"files": query}}, "news.yaml", {})
    with on_loopback() as on:
        source = resolved(recipe, str(tmp_path), on, NOW)
        planned = plan(source, landing_at(str(tmp_path / "to"), tmp_path), Pull(on, 1))
    assert (planned.files, planned.bytes) == (2, 2 * len(lines(3)))
    assert [asked.path for asked in gets(mirror, "jsonl")] == []


# --- What breaks off ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more"),
    [("a_jsonl", {}), ("a_csv", {"format": "csv"}), ("a_txt", {"format": "text"})],
)
def test_a_body_that_is_cut_goes_on_where_it_was(
    name: str, more: dict[str, Any], mirror: Mirror, tmp_path: Path
) -> None:
    body = lines(4_000) if name == "a_jsonl" else b"text\n" + b"a line of it\n" * 30_000
    [path] = serve_promised(mirror, **{name: body})
    mirror.fault = lambda asked: Fault(drop_after=3 * PIECE) if asked.path.endswith(path) and not asked.start else None
    landed, _ = pull(mirror, tmp_path, **more)
    assert [asked.start for asked in gets(mirror, path)] == [0, 3 * PIECE]
    if name == "a_jsonl":
        assert (landed / path).read_bytes() == body
    else:
        assert "".join(record["text"] or "" for record in records_of(landed)).count("a line of it") == 30_000


@pytest.mark.parametrize(("names", "form"), [("abc", "jsonl"), ("abcdef", "text")])
def test_a_killed_pull_downloads_nothing_twice(names: str, form: str, mirror: Mirror, tmp_path: Path) -> None:
    ending = "txt" if form == "text" else form
    serve_promised(mirror, **{f"{name}_{ending}": lines(100, name) for name in names})
    size = len(lines(100))
    with pytest.raises(Killed):
        pull(mirror, tmp_path, format=form, on_bytes=killed_after(int(2.5 * size)))
    landed, _ = pull(mirror, tmp_path, format=form, days=1)
    assert landed.name == "news-20260105T060000Z"
    counts = [len(gets(mirror, f"{name}.{ending}")) for name in names]
    assert (min(counts), sum(counts) <= len(names) + 2, len(records_of(landed))) == (
        1,
        True,
        len(names) if form == "text" else 100 * len(names),
    )
    assert not list(landed.rglob("*.part*"))


# --- What is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "form"), [("a_jsonl", "jsonl"), ("a_jsonl_bz2", "jsonl"), ("a_csv", "csv"), ("a_txt", "text")]
)
@pytest.mark.parametrize("wrong", [{"sha256": "0" * 64}, {"bytes": 5}])
def test_a_file_that_is_not_as_promised_does_not_land(
    name: str, form: str, wrong: dict[str, Any], mirror: Mirror, tmp_path: Path
) -> None:
    body = bz2.compress(lines(3)) if name.endswith("bz2") else b"text\nA\n" if form == "csv" else lines(3)
    [path] = serve(mirror, **{name: body})
    promise(mirror, {**promised(path, body), **wrong})
    with pytest.raises(ContractError, match=rf"own/{path}.*its source promises"):
        pull(mirror, tmp_path, format=form)
    assert_nothing_landed(tmp_path)
    promise(mirror, promised(path, body))
    assert pull(mirror, tmp_path, format=form, days=1)[1].files == 1


def test_a_damaged_file_is_downloaded_anew_once_it_is_mended(mirror: Mirror, tmp_path: Path) -> None:
    whole = zstandard.compress(lines(2_000))
    serve(mirror, a_jsonl_zst=whole[:-9])
    mirror.files["/own/paths"] = b"a.jsonl.zst\n"
    with pytest.raises(ContractError, match="damaged"):
        pull(mirror, tmp_path, paths="paths")
    assert_nothing_landed(tmp_path)
    serve(mirror, a_jsonl_zst=whole)
    landed, _ = pull(mirror, tmp_path, paths="paths", days=1)
    assert (landed / "a.jsonl.zst").read_bytes() == whole


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({}, r"own/snapshot\.json does not exist; .*`paths`"),
        ({"paths": "paths.gz"}, r"own/paths\.gz does not exist; correct `paths`"),
        ({"place": "/own/b.jsonl"}, r"own/b\.jsonl does not exist; correct `place`"),
    ],
)
def test_a_list_that_is_missing_is_named(more: dict[str, Any], named: str, mirror: Mirror, tmp_path: Path) -> None:
    serve(mirror, a_jsonl=lines(3))
    with pytest.raises(SnapshotIncomplete, match=named):
        pull(mirror, tmp_path, **more)


def test_a_file_that_is_missing_lets_nothing_land(mirror: Mirror, tmp_path: Path) -> None:
    serve_promised(mirror, a_jsonl=lines(3), b_jsonl=lines(3))
    body = mirror.files.pop("/own/b.jsonl")
    with pytest.raises(SnapshotIncomplete, match=r"own/b\.jsonl.*1 of 2 files are complete"):
        pull(mirror, tmp_path)
    assert_nothing_landed(tmp_path)
    mirror.files["/own/b.jsonl"] = body
    assert pull(mirror, tmp_path, days=1)[1].found == 1
    assert len(gets(mirror, "a.jsonl")) == 1


OUTSIDE = ["../private.jsonl", "a/../../private.jsonl", "/private.jsonl", "https://evil.example/a.jsonl", "a/./b.jsonl"]
OUTSIDE += ["//evil.example/a.jsonl", "a\\b.jsonl", "a\0.jsonl", "", "deep/"]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("paths", ["", "list.paths"])
def test_a_list_that_points_out_of_its_folder_is_refused(path: str, paths: str, mirror: Mirror, tmp_path: Path) -> None:
    serve_promised(mirror, a_jsonl=lines(3))
    mirror.files["/private.jsonl"] = lines(1)
    promise(mirror, promised("a.jsonl", lines(3)), promised(path, lines(1)))
    mirror.files["/own/list.paths"] = f"a.jsonl\n{path}\nb.jsonl".encode()
    with pytest.raises(ContractError, match="is no path below the folder"):
        pull(mirror, tmp_path, paths=paths)
    assert len(mirror.asked) == 1


@pytest.mark.parametrize(
    ("listed", "named"),
    [
        ([promised("a.jsonl", b""), promised("a.jsonl", b"")], "'a.jsonl' 2 times"),
        ([promised("a.jsonl", b"", address="s3://evil/a", etag="x")], "an address of its own"),
        ([{"path": "a.jsonl", "bytes": -1, "sha256": ""}], "fewer than no bytes"),
        ([{"path": "a.jsonl", "bytes": 1, "sha256": "x"}], "SHA-256"),
        ([{"path": "a.jsonl"}], "bytes"),
        ([], "no files"),
        ("a", "no list"),
    ],
)
def test_what_is_no_list_of_files_is_refused(listed: Any, named: str, mirror: Mirror, tmp_path: Path) -> None:
    mirror.files["/own/snapshot.json"] = json.dumps({"files": listed}).encode()
    with pytest.raises(ContractError, match=named):
        pull(mirror, tmp_path)


@pytest.mark.parametrize("body", [gzip.compress(b"a.jsonl\nb.jsonl\n")[:-9], b"", b"a.jsonl\na.jsonl\n", b"\xff\n"])
def test_a_list_of_paths_that_is_cut_or_none_is_refused(body: bytes, mirror: Mirror, tmp_path: Path) -> None:
    serve(mirror, a_jsonl=lines(3))
    mirror.files["/own/list.paths"] = body
    with pytest.raises(ContractError, match=r"own/list\.paths is no list"):
        pull(mirror, tmp_path, paths="list.paths")


class _Endless(socketserver.StreamRequestHandler):
    """Answers with a list that ends where the connection does, as a cut one would."""

    def handle(self) -> None:
        while self.rfile.readline().strip():
            pass
        self.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\na.jsonl\n")


def test_a_list_that_nothing_proves_whole_is_refused(tmp_path: Path) -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), _Endless) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        source = {"place": f"http://127.0.0.1:{server.server_address[1]}/", "format": "jsonl", "paths": "paths"}
        try:
            with pytest.raises(ContractError, match="paths is sent without its length"):
                pull_source({"files": source}, tmp_path / "landings")
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("led", ["snapshot.json", "a.jsonl"])
def test_a_redirect_to_another_host_is_not_followed(led: str, mirror: Mirror, tmp_path: Path) -> None:
    serve_promised(mirror, a_jsonl=lines(3))
    elsewhere = mirror.address.replace("127.0.0.1", "localhost")
    mirror.fault = lambda asked: (
        Fault(status=302, headers=(("Location", f"{elsewhere}/own/b"),)) if asked.path.endswith(led) else None
    )
    with pytest.raises(RecipeError, match="redirected to another site"):
        pull(mirror, tmp_path)
    assert_nothing_landed(tmp_path)
    assert not gets(mirror, "/b")


def local(tmp_path: Path) -> str:
    (tmp_path / "a.jsonl").write_bytes(lines(1))
    return str(tmp_path)


@pytest.mark.parametrize(
    ("place", "more", "named"),
    [
        ("http://own.example/a/", {}, "without TLS"),
        ("http://10.0.0.1/a/", {}, "without TLS"),
        ("https://user:word@own.example/a/", {}, "without user and query"),
        ("https://own.example/a/?key=1", {}, "without user and query"),
        ("https://own.example/a/../b/", {}, "without #"),
        ("https://own.example/a/%2e%2e/b/", {}, "without #"),
        ("https://own.example/a#b/", {}, "without #"),
        ("https://own.example/a/", {"paths": "b//c"}, "without #"),
        ("https://own.example/a/", {"paths": "../c"}, "paths must be"),
        ("https://own.example/a/", {"in_place": True}, "in_place and store are of s3://"),
        ("https://own.example/a/", {"store": "partner"}, "in_place and store are of s3://"),
        (local, {"paths": "list"}, "paths is of https://"),
    ],
)
def test_a_place_that_is_not_read_is_refused_before_anything_is_sent(
    place: str | Callable[[Path], str], more: dict[str, Any], named: str, tmp_path: Path
) -> None:
    where = place if isinstance(place, str) else place(tmp_path)
    with pytest.raises(RecipeError, match=named):
        pull_source({"files": {"place": where, "format": "jsonl", **more}}, tmp_path / "landings")


def test_a_place_without_files_of_the_form_is_named(mirror: Mirror, tmp_path: Path) -> None:
    serve_promised(mirror, a_csv=b"text\nA\n")
    for place in ("/own/", "/own/a.csv"):
        with pytest.raises(RecipeError, match="no jsonl files"):
            pull(mirror, tmp_path, place)
