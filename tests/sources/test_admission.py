"""A pull opens, asks and sends what its recipe and its query name, for every kind of source, and nothing else."""

import ast
import contextlib
import inspect
import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from refinery_sources.admission import Gate, Secretive, admitted, connect, fence_at, open_file, require_place
from refinery_sources.download import download
from refinery_sources.hubs.hub import own_address
from refinery_sources.pull import Pull, landing_at, pull
from refinery_sources.recipe import SEAM, kind_of
from refinery_sources.redirects import origin_of
from refinery_sources.source import Flow, Occasion, Part, Received, Terms
from refinery_sources.web import Web

from pipeline_tasks.binding import bind_fields, may_name_places, places_in
from pipeline_tasks.constraints import Uri
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.seams import own_parts
from pipeline_tasks.store import credential
from pipeline_tasks.store.credential import masked
from tests.crawl_mirror import Mirror
from tests.sources.api_pulls import facts_of, pulled, rows_of
from tests.sources.api_server import Api, Reply
from tests.sources.pulling import NOW, on_loopback, pull_source

SECRET = "a-secret-of-the-deployment"

QUERIES: Mapping[str, Mapping[str, Any]] = {
    "addresses": {"list": "/own/cut.tsv"},
    "api": {
        "url": "https://own.example/v1",
        "id": "id",
        "fields": {"text": "t"},
        "pages": {"by": "once"},
        "auth": {"by": "bearer", "env": "OWN_TOKEN"},
    },
    "common_crawl": {"crawl": "CC-MAIN-2026-45", "address": "https://own.example"},
    "common_crawl_news": {"day": "2026-11-25", "address": "https://own.example"},
    "common_crawl_records": {"crawl": "CC-MAIN-2026-45", "address": "https://own.example"},
    "delta": {"table": "/own/table"},
    "files": {"place": "/own/files", "format": "jsonl"},
    "git": {"repository": "/own/repository"},
    "hugging_face": {"repository": "kelp/ferries", "address": "https://own.example"},
    "iceberg": {"table": "/own/table"},
}
"""A query of each kind, which is at `/own` or `https://own.example`."""


OF_THE_WEB = {"place": "https://own.example/files/", "format": "jsonl", "paths": "list.paths.gz"}
"""A query of a kind that is otherwise at a path."""

SOURCES = [*((kind, QUERIES[kind]) for kind in own_parts(SEAM)), ("files", OF_THE_WEB)]


def source_of(kind: str) -> Any:
    return bind_fields(kind_of(kind), QUERIES[kind], kind)


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credential, "_READ", {})
    monkeypatch.setenv("OWN_TOKEN", SECRET)
    for name in ("HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


# --- Every kind ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "query"), SOURCES)
def test_every_kind_says_where_it_is_and_is_admitted_there_alone(kind: str, query: Mapping[str, Any]) -> None:
    source, gate = bind_fields(kind_of(kind), query, kind), Gate()
    named = [place for _, place in places_in(source)]
    assert any("/own" in place or "own.example" in place for place in named)
    with admitted(source, gate):
        for place in named:
            if place.startswith("https://"):
                gate.require(request(place))
            else:
                require_place(place)
        for place in ("/etc/passwd", "/own/files/../../etc", "/own2", "s3://private/a", "gs://b/c", "file:///etc"):
            for way in (require_place, connect, open_file):
                with pytest.raises(RecipeError, match="data names no places"):
                    way(place)
        for url in (
            "https://evil.example/",
            "http://own.example/",
            "https://own.example:8443/",
            "https://own.example.evil/",
        ):
            with pytest.raises(RecipeError, match="no address that"):
                gate.require(request(url))


@pytest.mark.parametrize("kind", own_parts(SEAM))
def test_a_field_that_could_say_where_a_kind_is_has_the_type_of_a_place(kind: str) -> None:
    """Names of fields that places had so far: one of another type would be declared by nobody."""
    hints = get_type_hints(kind_of(kind), include_extras=True)
    told = re.compile(r"(place|table|repository|address|url|bucket|path|folder|file|root|endpoint|host|catalog|uri)")
    names = [entry.name for entry in fields(kind_of(kind)) if entry.init and told.fullmatch(entry.name)]  # type: ignore[arg-type]
    names = [name for name in names if (kind, name) != ("hugging_face", "repository")]  # a name below its address
    assert [name for name in names if not may_name_places(hints[name])] == []


@pytest.mark.parametrize("kind", [kind for kind in own_parts(SEAM) if isinstance(source_of(kind), Secretive)])
def test_a_secret_of_every_kind_goes_where_it_belongs_alone(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)
    source, gate = source_of(kind), Gate()
    ((place, *_),) = source.secrets.values()
    (key,) = source.secrets
    credential.note_secret(SECRET, key)
    with admitted(source, gate):
        gate.led |= {origin_of(place), origin_of("https://files.example")}
        gate.require(request(place, Authorization=f"Bearer {SECRET}"))
        gate.require(request("https://files.example/a"))
        for sent in (
            request("https://files.example/a", Authorization=f"Bearer {SECRET}"),
            request("https://files.example/a", X=f"{SECRET}"),
            request(f"https://files.example/a?key={SECRET}"),
        ):
            with pytest.raises(RecipeError, match="belongs"):
                gate.require(sent)


def request(url: str, **headers: str) -> Any:
    import httpx

    return httpx.Request("GET", url, headers=headers)


@dataclass(frozen=True)
class Careless:
    """A kind whose author has forgotten to say what it opens, asks and sends."""

    way: str
    at: str
    name: str = "careless"
    snapshot: str = "s"
    cursor: str = ""
    terms: Terms = field(default_factory=lambda: Terms("", ""))
    typical_bytes: int = 0

    def query(self) -> Mapping[str, Any]:
        return {"source": "careless"}

    def resolved(self, _occasion: object) -> "Careless":
        return self

    def parts(self, _web: Web) -> list[Part]:
        return [Part("a.jsonl", self.at)]

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        if self.way == "file":
            open_file(self.at).read()
        if self.way == "store":
            connect(self.at.rpartition("/")[0]).read("a")
        return download(web, part, partial, flow)


@dataclass(frozen=True)
class Careful(Careless):
    at: Uri


@pytest.mark.parametrize("way", ["file", "store", "web"])
def test_a_kind_that_declares_nothing_cannot_be_pulled(way: str, tmp_path: Path, mirror: Mirror) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("private")
    mirror.files["/a"] = b"{}"
    at = f"{mirror.address}/a" if way == "web" else f"{tmp_path}/in/a"
    with on_loopback() as on, pytest.raises(RecipeError, match=r"data names no places|no address that"):
        pull(Careless(way, at), landing_at(str(tmp_path / "to"), tmp_path), Pull(on, 1))
    assert mirror.asked == []
    if way == "web":
        with on_loopback() as on:
            assert pull(Careful(way, at), landing_at(str(tmp_path / "to"), tmp_path), Pull(on, 1)).files == 1


def test_no_kind_opens_a_store_or_sends_a_request_by_another_way() -> None:
    """What admission cannot see: other doors than its own, in the modules of kinds."""
    rooms = {Path(inspect.getfile(kind_of(kind))).parent for kind in own_parts(SEAM)}
    doors = {"connect", "open_landed", "localize", "digest_of_file", "Client", "urlopen", "get_object"}
    found = [
        f"{path.name}: {node.func.value.id}.{node.func.attr}"
        for room in rooms
        for path in room.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
        if node.func.attr in doors and node.func.value.id not in ("sqlite3", "duckdb")  # which open no file of a source
    ]
    assert len(rooms) >= 5
    assert found == []


# --- Hosts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://[fe80::1]/",
        "http://[fd00:ec2::254]/",
        "http://[fd00:ec2::23]/",
        "http://[fd20:ce::254]/",
        "http://192.0.0.192/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://100.100.100.200/",
        "http://[::ffff:169.254.169.254]/",
    ],
)
def test_the_addresses_at_which_clouds_give_keys_are_asked_by_nobody(url: str, tmp_path: Path) -> None:
    source = {"common_crawl": {"crawl": "latest", "address": url}}
    with pytest.raises(RecipeError, match="an address of this machine"):
        pull_source(source, tmp_path / "landings")


@pytest.mark.parametrize("led", ["http://127.0.0.1:1/", "http://10.0.0.1/", "http://localhost/", "http://[::1]/"])
def test_an_answer_leads_to_no_address_of_this_network(led: str) -> None:
    import httpx

    gate = Gate()
    with admitted(source_of("hugging_face"), gate):
        asked = request("https://own.example/a")
        gate.follow(httpx.Response(302, headers={"Location": led}, request=asked))
        with pytest.raises(RecipeError, match="an address of this machine"):
            gate.require(request(led))


def test_the_token_of_the_hub_is_not_shown_to_another_hub(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)
    assert own_address() == "https://huggingface.co"
    source = {"hugging_face": {"repository": "kelp/ferries", "address": mirror.address}}
    with pytest.raises(RecipeError, match="has no dataset"):
        pull_source(source, tmp_path / "landings")
    assert len(mirror.asked) == 1
    assert not any(SECRET in str(asked) for asked in mirror.asked)


# --- Links and pointers -------------------------------------------------------------------------------------------


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A file that no source may land."""
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"text": "private"}\n')
    return folder


def landed_texts(folder: Path) -> list[str]:
    return [path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("form", ["jsonl", "text", "csv", "xml"])
@pytest.mark.parametrize("link", ["file", "folder", "within"])
def test_files_are_not_read_by_a_link_that_leaves_their_folder(
    form: str, link: str, private: Path, tmp_path: Path
) -> None:
    place = tmp_path / "in"
    (place / "deep").mkdir(parents=True)
    ending = {"text": "txt"}.get(form, form)
    (private / f"b.{ending}").write_text("id,text\n1,private\n" if form == "csv" else '{"text": "private"}\n')
    source = {"place": str(place), "format": form, **({"record": "a"} if form == "xml" else {})}
    if link == "within":
        (place / "deep" / f"b.{ending}").write_bytes((private / f"b.{ending}").read_bytes())
        (place / f"c.{ending}").symlink_to(place / "deep" / f"b.{ending}")
        if form == "jsonl":
            assert pull_source({"files": source}, tmp_path / "landings")[1].files == 2
        return
    (place / f"c.{ending}").symlink_to(private / f"b.{ending}")
    if link == "folder":
        source["place"] = str(place / f"c.{ending}")
    with pytest.raises(RecipeError, match="data names no places"):
        pull_source({"files": source}, tmp_path / "landings")
    assert not any("private" in text for text in landed_texts(tmp_path / "landings"))


@pytest.mark.parametrize("pointer", ["link", "git file", "alternates", "objects", "beside", "encoded"])
def test_a_repository_that_points_elsewhere_is_refused(pointer: str, tmp_path: Path) -> None:
    theirs, own = tmp_path / "private", tmp_path / "own"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@a.org"]
    for place in (theirs, own):
        subprocess.run([*git, "init", "-q", place], check=True)
        (place / "a.txt").write_text(f"text of {place.name}")
        subprocess.run([*git, "-C", place, "add", "-A"], check=True)
        subprocess.run([*git, "-C", place, "commit", "-qm", "a"], check=True)
    assert pull_source({"git": {"repository": str(own)}}, tmp_path / "landings", name="first")[1].files == 1
    repository = str(own)
    if pointer == "beside":  # where Git looks, too
        (own / ".git").rename(own / "kept")
        (tmp_path / "own.git").symlink_to(theirs / ".git")
    elif pointer == "encoded":  # which Git decodes
        (tmp_path / "own" / "%2e%2e").mkdir()
        repository = f"file://{own}/%2e%2e/private"
    elif pointer == "alternates":
        (own / ".git/objects/info/alternates").write_text(f"{theirs}/.git/objects\n")
    elif pointer == "objects":
        (own / ".git/objects").rename(own / "kept")
        (own / ".git/objects").symlink_to(theirs / ".git/objects")
    else:
        (own / ".git").rename(own / "kept")
        if pointer == "link":
            (own / ".git").symlink_to(theirs / ".git")
        else:
            (own / ".git").write_text(f"gitdir: {theirs}/.git\n")
    with pytest.raises(RecipeError, match=r"data names no places|is no repository"):
        pull_source({"git": {"repository": repository}}, tmp_path / "landings")


def delta_table(folder: Path) -> Path:
    import pyarrow as pa

    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(folder), pa.table({"id": ["1"], "text": [f"text of {folder.name}"]}))
    return folder


@pytest.mark.parametrize("pointer", ["path", "link", "feed"])
def test_a_delta_table_whose_log_points_elsewhere_is_refused(pointer: str, tmp_path: Path) -> None:
    theirs, own = delta_table(tmp_path / "private"), delta_table(tmp_path / "own")
    assert pull_source({"delta": {"table": str(own)}}, tmp_path / "landings", name="first")[1].files == 1
    [data], [aim] = own.glob("*.parquet"), theirs.glob("*.parquet")
    if pointer == "link":
        data.unlink()
        data.symlink_to(aim)
    else:
        log = own / "_delta_log" / "00000000000000000000.json"
        log.write_text(log.read_text().replace(data.name, f"file://{aim}"))
    with pytest.raises(RecipeError, match=r"data names no places|leaves its folder"):
        pull_source({"delta": {"table": str(own)}}, tmp_path / "landings")


def test_an_iceberg_table_whose_metadata_point_elsewhere_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa

    sql = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = sql.SqlCatalog("own", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("db")
    rows = pa.table({"id": ["1"], "text": ["private"]})
    table = catalog.create_table("db.t", rows.schema)
    table.append(rows)
    metadata = Path(table.metadata_location.removeprefix("file://"))
    evil = {"py-io-impl": "os.Evil", "s3.endpoint": "http://evil.example"}  # which PyIceberg itself would follow
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | {"properties": evil}))
    assert pull_source({"iceberg": {"table": str(metadata)}}, tmp_path / "landings", name="first")[1].files == 1
    copy = tmp_path / "own" / "metadata" / metadata.name
    copy.parent.mkdir(parents=True)
    copy.write_bytes(metadata.read_bytes())
    for place in (str(copy), str(copy.parent.parent)):
        (copy.parent / "version-hint.text").write_text(metadata.name)
        with pytest.raises(RecipeError, match="data names no places"):
            pull_source({"iceberg": {"table": place}}, tmp_path / "landings")


@pytest.mark.parametrize(
    "location", ["{}/x", "file:{}/x", "file://{}/x?/../../own/y", "file://{}/x#/../../own/y", "{}/../private/x"]
)
def test_a_location_is_admitted_as_it_is_opened(location: str, private: Path, tmp_path: Path) -> None:
    """PyIceberg parses locations by its own rule: what is asked for is what that rule gives."""
    pytest.importorskip("pyiceberg")
    from refinery_sources.tables.fenced_io import FencedIO

    (private / "x").write_text("private")
    own = tmp_path / "own"
    own.mkdir()
    source = bind_fields(kind_of("iceberg"), {"table": str(own)}, "iceberg")
    with admitted(source, Gate()), contextlib.chdir(own):
        files = FencedIO({}, fence_at())
        with pytest.raises(RecipeError, match="data names no places"):
            files.new_input(location.format(private)).open().read()


# --- Names of snapshots -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("note", [".pull/query.json", "snapshot.json"])
def test_a_landing_says_of_no_earlier_pull_where_the_next_one_lands(note: str, private: Path, tmp_path: Path) -> None:
    landings = tmp_path / "landings"
    source = {"files": {"place": str(private), "format": "jsonl"}}
    landed, _ = pull_source(source, landings)
    written = json.loads((landed / "snapshot.json").read_bytes())
    written["source"]["query"]["snapshot"] = "../theirs"
    planted = landings / "news-99991231T000000Z" / note
    planted.parent.mkdir(parents=True)
    planted.write_text(json.dumps({**written, "recipe": "news", "query": written["source"]["query"]}))
    with pytest.raises(RecipeError, match=r"'\.\./theirs' is no name of a snapshot"):
        pull_source(source, landings)
    assert not (tmp_path / "theirs").exists()


def test_a_run_lands_nothing_outside_its_landing(tmp_path: Path, mirror: Mirror) -> None:
    query = {"crawl": "CC-MAIN-2026-45", "address": mirror.address, "name": "../theirs"}
    with pytest.raises(RecipeError, match=r"'\.\./theirs' is no name of a snapshot"):
        pull_source({"common_crawl_records": query}, tmp_path / "landings")
    assert not mirror.asked
    assert not (tmp_path / "theirs").exists()


@pytest.mark.parametrize("kind", ["git", "hugging_face"])
@pytest.mark.parametrize("commit", ["../../../kelp/private/tree/main", "--output=a", "main"])
def test_an_unfinished_pull_names_a_commit_and_no_path(commit: str, kind: str, tmp_path: Path) -> None:
    repository = str(tmp_path) if kind == "git" else "kelp/ferries"
    source = bind_fields(kind_of(kind), {"repository": repository}, kind)
    more = {} if kind == "git" else {"address": own_address(), "license": ""}
    noted = {**source.query(), **more, "commit": commit, "snapshot": "news-a"}
    with on_loopback() as on, admitted(source, on.gate), pytest.raises(RecipeError, match="is no commit"):
        source.resolved(Occasion(on, "news", NOW, unfinished=noted))


# --- What is written ----------------------------------------------------------------------------------------------


def test_a_secret_that_an_api_echoes_is_masked_and_counted(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = 'own/"secret"\\of-ours'
    monkeypatch.setenv("OWN_TOKEN", secret)
    records = [
        {"id": 1, "text": f"A page for {secret}, and again {secret}.", "debug": {"headers": [f"Bearer {secret}"]}},
        {"id": 2, "text": "Another page.", "debug": None},
    ]
    api.reply = lambda _asked: Reply({"items": records})
    auth = {"by": "bearer", "env": "OWN_TOKEN"}
    query = {"records": "items", "fields": {"text": "text"}, "pages": {"by": "once"}, "auth": auth}
    landed, _ = pulled(api, tmp_path / "landings", **query)
    assert [asked.headers["Authorization"] for asked in api.asked] == [f"Bearer {secret}"]
    written = [json.dumps(row) for row in rows_of(landed)] + [(landed / "snapshot.json").read_text()]
    assert not any(part in text for text in written for part in (secret, json.dumps(secret)[1:-1], "of-ours"))
    assert sorted(row["text"] for row in rows_of(landed)) == [
        "A page for <SECRET>, and again <SECRET>.",
        "Another page.",
    ]
    assert facts_of(landed)["masked"] == 3


def test_secrets_of_the_environment_are_masked_and_words_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCY",
        "REFINERY_STORE_PARTNER": "key-of-the-partner:secret-of-the-partner https://s3.partner.example",
        "REFINERY_LEDGER": "postgresql://refinery:pass%2Fword-of-ledger@db/ledger",
        "AIRFLOW_CONN_NEWS": json.dumps({"login": "me", "password": "password-of-news"}),
        "SHORT_PASSWORD": "ferry",
    }.items():
        monkeypatch.setenv(name, value)
    said = b"a wJalrXUtnFEMI/K7MDENG+bPxRfiCY b secret-of-the-partner c pass/word-of-ledger d password-of-news e ferry"
    assert masked(said) == (b"a <SECRET> b <SECRET> c <SECRET> d <SECRET> e ferry", 4)
    assert masked(b"https://s3.partner.example ferry") == (b"https://s3.partner.example ferry", 0)
