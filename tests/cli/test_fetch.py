"""Public sets and lists come through the hub's own client and HTTP, from a server on loopback, and are pinned."""

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import Transient
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages import decontaminate, filter_url

QUESTION = "Which river rises in the hills to the north of the town and is slow for most of its length?"
OLD, NEW = "0" * 40, "1" * 40


@dataclass(slots=True)
class Site:
    """A server's address, the content of its paths, and the revision of its sets that is the newest."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    newest: str = OLD


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            content = site.files.get(self.path.partition("?")[0])
            if content is None and self.path.startswith("/api/datasets/"):
                content = site.files.get(f"{self.path}/revision/{site.newest}")
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.send_header("X-Repo-Commit", self.path.split("/")[5] if "/resolve/" in self.path else site.newest)
            self.send_header("ETag", f'"{hashlib.sha256(content or b"").hexdigest()}"')
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site.address = f"http://127.0.0.1:{server.server_port}"
    yield site
    server.shutdown()
    server.server_close()


def publish_arc(site: Site, revision: str, question: str) -> None:
    """Put a revision of a set on the hub."""
    path = "ARC-Easy/test-00000-of-00001.parquet"
    rows = [{"id": "a", "question": question, "choices": {"text": ["Otter", "Kingfisher"], "label": ["A", "B"]}}]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    siblings = [{"rfilename": "README.md"}, {"rfilename": path}]
    about = {"id": "allenai/ai2_arc", "sha": revision, "siblings": siblings, "cardData": {"license": ["cc-by-sa-4.0"]}}
    site.files[f"/api/datasets/allenai/ai2_arc/revision/{revision}"] = json.dumps(about).encode()
    site.files[f"/datasets/allenai/ai2_arc/resolve/{revision}/{path}"] = out.getvalue()
    site.newest = revision


def publish_lists(site: Site, **categories: tuple[str, str]) -> None:
    """Put categories on the server: the hosts and URLs of each."""
    sums = []
    for name, (domains, urls) in categories.items():
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            for kind, text in (("domains", domains), ("urls", urls)):
                entry = tarfile.TarInfo(f"{name}/{kind}")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
        site.files[f"/{name}.tar.gz"] = out.getvalue()
        sums.append(f"{hashlib.md5(out.getvalue(), usedforsecurity=False).hexdigest()}  {name}.tar.gz")
    site.files["/MD5SUM.LST"] = "\n".join(sums).encode()


def fetch(kind: str, folder: Path, site: Site, *more: str) -> int:
    return main(["setup", "fetch", kind, "--output", str(folder), "--source", site.address, *more])


def test_a_set_of_the_hub_is_searched_for(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish_arc(site, OLD, QUESTION)
    assert fetch("evaluation-sets", tmp_path, site, "--only", "arc_easy") == 0
    shown = capsys.readouterr().out
    assert "licence cc-by-sa-4.0" in shown
    assert f"arc_easy: {tmp_path}/arc_easy.jsonl.gz" in shown
    (item,) = gzip.decompress((tmp_path / "arc_easy.jsonl.gz").read_bytes()).splitlines()
    assert json.loads(item) == {"question": QUESTION, "choices": ["Otter", "Kingfisher"]}
    params = decontaminate.Params(benchmarks={"arc_easy": FilePath(str(tmp_path / "arc_easy.jsonl.gz"))})
    assert [text.text for text in decontaminate.read_texts(params)] == ["Otter", "Kingfisher", QUESTION]


def test_a_pinned_set_stays_until_it_is_updated(site: Site, tmp_path: Path) -> None:
    publish_arc(site, OLD, QUESTION)
    assert fetch("evaluation-sets", tmp_path, site, "--only", "arc_easy") == 0
    before = (tmp_path / "arc_easy.jsonl.gz").read_bytes()
    publish_arc(site, NEW, QUESTION.replace("river", "stream"))
    assert fetch("evaluation-sets", tmp_path, site, "--only", "arc_easy") == 0
    assert (tmp_path / "arc_easy.jsonl.gz").read_bytes() == before
    assert fetch("evaluation-sets", tmp_path, site, "--only", "arc_easy", "--update") == 0
    assert b"stream" in gzip.decompress((tmp_path / "arc_easy.jsonl.gz").read_bytes())
    assert json.loads((tmp_path / "fetched.json").read_bytes())["arc_easy.jsonl.gz"]["revision"] == NEW


def test_a_revision_with_other_content_than_was_pinned_is_refused(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish_arc(site, OLD, QUESTION)
    assert fetch("evaluation-sets", tmp_path, site, "--only", "arc_easy") == 0
    before = (tmp_path / "arc_easy.jsonl.gz").read_bytes()
    publish_arc(site, OLD, QUESTION.replace("river", "stream"))
    assert fetch("evaluation-sets", tmp_path, site, "--only", "arc_easy") == 65
    assert "arc_easy.jsonl.gz" in capsys.readouterr().err
    assert (tmp_path / "arc_easy.jsonl.gz").read_bytes() == before


def test_lists_block_the_hosts_of_all_categories(site: Site, tmp_path: Path) -> None:
    publish_lists(
        site, adult=("b.org\na.org\n", "c.org/x\n"), phishing=("a.org\nd.org\n\xff.org\n", ""), games=("e.org\n", "")
    )
    assert fetch("url-lists", tmp_path, site, "--only", "adult", "--only", "phishing") == 0
    lists = {name: FilePath(str(tmp_path / f"{name}.txt.gz")) for name in ("domains", "urls")}
    urls = ["https://a.org/", "https://www.d.org/1", "https://c.org/x", "https://c.org/y", "https://e.org/"]
    (out,) = filter_url.screen(iter([pa.record_batch({"url": urls})]), params=filter_url.Params(**lists))
    assert [reason is None for reason in out["reason"].to_pylist()] == [False, False, False, True, True]
    pins = json.loads((tmp_path / "fetched.json").read_bytes())
    assert pins["domains.txt.gz"]["licence"] == "CC BY-SA 4.0"
    assert pins["domains.txt.gz"]["sha256"] == hashlib.sha256((tmp_path / "domains.txt.gz").read_bytes()).hexdigest()


def test_an_archive_with_another_sum_is_refused(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish_lists(site, adult=("a.org\n", ""))
    site.files["/adult.tar.gz"] += b" "
    assert fetch("url-lists", tmp_path, site, "--only", "adult") == 65
    assert "adult.tar.gz" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("kind", "name"), [("evaluation-sets", "arc_easy"), ("url-lists", "adult")])
def test_without_a_network_the_way_out_is_named(
    kind: str, name: str, site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.address = "http://127.0.0.1:9"  # discard: nothing listens there
    assert fetch(kind, tmp_path / "sets", site, "--only", name) == Transient.exit_code
    shown = capsys.readouterr().err
    assert "--from" in shown
    assert "another machine" in shown


@pytest.mark.parametrize(("kind", "name"), [("evaluation-sets", "arc_esay"), ("url-lists", "adlut")])
def test_a_name_that_is_not_known_is_refused_with_the_nearest(
    kind: str, name: str, site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish_lists(site, adult=("a.org\n", ""))
    assert fetch(kind, tmp_path, site, "--only", name) == 78
    assert {"arc_esay": "arc_easy", "adlut": "adult"}[name] in capsys.readouterr().err


def test_what_is_no_url_of_the_web_is_refused(site: Site, tmp_path: Path) -> None:
    site.address = "file:///etc"
    assert fetch("url-lists", tmp_path, site) == 78
