"""Who sees what: three roles by Airflow's permissions, every route with its role, and an attack of all routes.

Every page is whole, its links lead somewhere, and nothing of a crawl or of what is typed runs in it.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store import access_log
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests.archives import http, response, zipped
from tests.chain import How, refined
from tests.map_root import published
from tests.publish.test_building import built, recipe_of, refined_days
from tests.visitors import be

ROLES = ("viewer", "curator", "steward")
AIRFLOW = dict(zip(ROLES, ("VIEWER", "USER", "OP"), strict=True))
OPEN = ("/", "/page", "/purpose", "/static/{name}", "/verdicts")
DOCS = Path(__file__).parents[2] / "docs" / "security.md"

HOSTILE = "2026-11-21"
"""A snapshot whose addresses and texts try to run a script."""

SCRIPT, NAME = "<script>alert(1)</script>", "<script>alert(1)<script>"
PROSE = f"The ferry {html.escape(SCRIPT)} leaves the harbor every morning before the fog has lifted. "
HOSTILE_BODIES = (PROSE * 4, f"Паром {html.escape(SCRIPT)} уходит из гавани каждое утро, пока не рассеялся туман. " * 4)


@dataclass(slots=True)
class Crawl:
    """A root with two snapshots and a training dataset, and what of its rows only some may see."""

    root: str
    kept: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)
    rejected_id: str = ""
    kept_id: str = ""
    day: str = "2026-11-20"
    pages: dict[str, Any] = field(default_factory=dict)

    @property
    def version(self) -> version_log.Version:
        """The snapshot of the day that is asked for."""
        return version_log.current(self.root, "tiny", self.day)

    def path(self, stage: str) -> str:
        """The path of the manifest of a stage of it."""
        return path_of(self.version.manifests[stage])


def marks(row: dict[str, Any]) -> Iterator[str]:
    """What of a row shows on a page that it was shown: its address, and the words at the beginning of its text."""
    if row.get("url"):
        yield row["url"].split("://", 1)[-1].replace("&", "&amp;")
    words = (row.get("text") or "").split()
    if len(words) > 12:
        yield " ".join(words[3:8])


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Crawl:
    folder = tmp_path_factory.mktemp("seen")
    root = refined_days(folder)
    (folder / HOSTILE).mkdir()
    bodies = enumerate(HOSTILE_BODIES)
    pages = [response(f"https://a.example.org/{at}?{SCRIPT}", http(f"<p>{body}</p>".encode())) for at, body in bodies]
    (folder / HOSTILE / "a.warc.gz").write_bytes(b"".join(zipped(pages)))
    refined(root, str(folder / HOSTILE), How(recipe=str(folder / "tiny.yaml")))
    built(root, recipe_of())
    crawl = Crawl(root)
    for version in (version_log.current(root, "tiny", day) for day in ("2026-11-19", "2026-11-20")):
        for path in version.manifests.values():
            manifest = read_manifest(root, path)
            for batch in read_shards(root, manifest.rejects + manifest.quarantine):
                for row in batch.to_pylist():
                    crawl.rejected.update(marks(row))
                    crawl.rejected_id = row.get("id") or crawl.rejected_id
        for batch in read_shards(root, read_manifest(root, version.refined).shards):
            for row in batch.to_pylist():
                crawl.kept.update(marks(row))
                crawl.kept_id = row["id"]
    crawl.rejected -= crawl.kept  # an address that was crawled twice, a text that is there twice
    assert len(crawl.kept) > 50
    assert len(crawl.rejected) > 20
    assert crawl.rejected_id
    return crawl


@pytest.fixture
def root(crawl: Crawl) -> Path:
    return Path(crawl.root)


Ask = Callable[[str, str], Any]


@pytest.fixture
def ask(visitor: Any, app: Any) -> Ask:
    """Ask for an address in a role."""

    def asked(role: str, request: str) -> Any:
        be(app, role, AIRFLOW[role])
        method, _, address = request.partition(" ")
        return visitor.request(method, address)

    return asked


def roles_of_routes() -> dict[str, str]:
    """The role that each route needs, by the table of the docs."""
    lines = re.findall(r"^\| (`(?:GET|POST) /.*?`) \| (\w+) \| .*\|$", DOCS.read_text(), re.MULTILINE)
    return {route: role for routes, role in lines for route in re.findall("`([^`]+)`", routes)}


def routes(app: Any) -> list[str]:
    return [f"{method} {route.path}" for route in app.routes for method in sorted(route.methods - {"HEAD"})]


def addresses(crawl: Crawl) -> dict[str, list[str]]:
    """Addresses of every route, with all that a curious visitor may ask."""
    day, data = f"tiny/{crawl.day}", "corpus/build"
    ids = [f"doc={id_}" for id_ in (crawl.kept_id, crawl.rejected_id)]
    stages = ("extract", "filter_language", "dedup_exact")
    version = version_log.current(crawl.root, "corpus")
    files = [*version.verdicts.values(), *crawl.version.verdicts.values(), *crawl.version.manifests.values()]
    verdicts = [str(each.relative_to(crawl.root)) for each in Path(crawl.root).rglob("verdict.json")]
    pages = [str(each.relative_to(crawl.root)) for each in Path(crawl.root).rglob("docs/index.html")]
    stored = [*map(path_of, files), *verdicts, *pages, version_log.version_path("tiny", 1)]
    return {
        "GET /": ["/"],
        "GET /page": ["/page"],
        "GET /sources": ["/sources"],
        "GET /ask": ["/ask"],
        "GET /ask/{name}": [
            *(f"/ask/why?what={each.partition('=')[2]}" for each in ids),
            "/ask/why?what=example.org/no-such-page",
            "/ask/why?what=the",
            "/ask/versions",
        ],
        "GET /ask/{name}/{recipe}": [
            *(f"/ask/look-similar/tiny?document={each.partition('=')[2]}" for each in ids),
            "/ask/look-breakdown/tiny?by=site&across=url",
            "/ask/look-versions/tiny",
        ],
        "GET /ask/{name}/{recipe}/{snapshot}": [
            *(f"/ask/look-lineage/{each}" for each in (day, data)),
            f"/ask/look-breakdown/{day}",
            f"/ask/look-breakdown/{day}?by=url",
            f"/ask/look-breakdown/{day}?by=language&across=reason",
        ],
        "GET /snapshot/{recipe}/{snapshot}": [f"/snapshot/{day}", f"/snapshot/{data}"],
        "GET /build/{recipe}": ["/build/corpus"],
        "GET /lineage/{recipe}/{snapshot}": [f"/lineage/{day}", f"/lineage/{data}"],
        "GET /whatif/{recipe}/{snapshot}": [f"/whatif/{day}"],
        "GET /compare/{recipe}": ["/compare/tiny?a=1&b=2", "/compare/tiny?a=1&b=2&documents=1"],
        "GET /verdicts": ["/verdicts"],
        "GET /verdicts/{number}": ["/verdicts/1"],
        "GET /manifest/{path:path}": [f"/manifest/{path_of(path)}" for path in crawl.version.manifests.values()],
        "GET /files/{path:path}": [f"/files/{path}" for path in (*stored, path_of(crawl.version.report))],
        "GET /static/{name}": ["/static/refinery.css"],
        "GET /purpose": ["/purpose", "/purpose?following=//evil.example"],
        "POST /purpose": ["/purpose"],
        "GET /find": ["/find", *(f"/find?{each}" for each in ids), "/find?site=example.org", "/find?text=the"],
        "GET /read/{recipe}/{snapshot}": [f"/read/{day}", f"/read/{day}?kept=0&rejected=200", f"/read/{day}?after=31"],
        "POST /read/{recipe}/{snapshot}": [f"/read/{day}"],
        "GET /intruder/{recipe}/{snapshot}": [f"/intruder/{day}?by=language"],
        "POST /intruder/{recipe}/{snapshot}": [f"/intruder/{day}"],
        "GET /card/{recipe}/{snapshot}": [f"/card/{data}"],
        "GET /columns/{recipe}/{snapshot}": [f"/columns/{day}", f"/columns/{day}?by=language"],
        "GET /breakdown/{recipe}/{snapshot}": [f"/breakdown/{day}", f"/breakdown/{day}?by=language"],
        "GET /sample/{path:path}": [f"/sample/{crawl.path(stage)}" for stage in stages],
        "GET /trace/{recipe}/{snapshot}": [f"/trace/{data}?token={at}" for at in (1, 200)],
        "GET /document/{recipe}/{snapshot}": [f"/document/{day}", *(f"/document/{day}?{each}" for each in ids)],
        "GET /search/{recipe}/{snapshot}": [
            *(f"/search/{day}?phrase=the&start={max(0, crawl.version.documents + at)}" for at in (-9, 0, 9)),
            *(f"/search/{day}?phrase={'+'.join(mark.split()[:3])}" for mark in sorted(crawl.rejected) if " " in mark),
            f"/search/{day}?where=language=de",
        ],
        "GET /similar/{recipe}": [f"/similar/tiny?{each}" for each in ids],
        "GET /map/{recipe}/{snapshot}": [f"/map/{day}"],
        "GET /rejects/{recipe}/{snapshot}/{stage}": [f"/rejects/{day}/{stage}" for stage in stages],
        "GET /rejects/{recipe}/{snapshot}/{stage}/rows.{kind}": [
            f"/rejects/{day}/{stages[1]}/rows.{kind}" for kind in ("csv", "jsonl")
        ],
    }


def requests(crawl: Crawl) -> list[tuple[str, str]]:
    """Each route with a request of it."""
    return [(route, f"{route.split()[0]} {at}") for route, every in addresses(crawl).items() for at in every]


# --- Roles ------------------------------------------------------------------------------------------------------------


def held(user: Any, auth: Any, recipe: str = "web") -> tuple[bool, bool]:
    """Whether a user is a curator and a steward of a recipe."""
    from refinery_airflow.access.roles import is_curator, is_steward

    return is_curator(user, recipe, auth), is_steward(user, recipe, auth)


def test_the_roles_of_the_simple_auth_manager() -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    auth = SimpleAuthManager()
    names = ("VIEWER", "USER", "OP", "ADMIN")
    roles = {name: held(SimpleAuthManagerUser(username="ada", role=name), auth) for name in names}
    assert roles == {"VIEWER": (False, False), "USER": (True, False), "OP": (True, True), "ADMIN": (True, True)}


class UserOfFab:
    """A user of FAB as its checks see one: permissions by name."""

    def __init__(self, *perms: tuple[str, str]) -> None:
        self.perms = [*perms]

    def get_id(self) -> str:
        """The id, by which nothing is cached here."""
        return "1"


def test_the_roles_of_fab() -> None:
    """The permissions are those that FAB gives its own roles, and no others make a steward."""
    fab = pytest.importorskip("airflow.providers.fab.auth_manager.fab_auth_manager")
    from airflow.providers.fab.auth_manager.security_manager.override import FabAirflowSecurityManagerOverride

    auth = fab.FabAuthManager()
    given = {each["role"]: each["perms"] for each in FabAirflowSecurityManagerOverride.ROLE_CONFIGS}
    assert {name: held(UserOfFab(*perms), auth) for name, perms in given.items()} == {
        "Public": (False, False),
        "Viewer": (False, False),
        "User": (True, False),
        "Op": (True, True),
        "Admin": (True, True),
    }
    approve, connect, edit = ("can_edit", "HITL Detail"), ("can_edit", "Connections"), ("can_edit", "DAGs")
    given = {"a": (approve, edit), "b": (connect, edit), "c": (approve, connect, edit), "d": (approve, connect)}
    assert {name: held(UserOfFab(*perms), auth) for name, perms in given.items()} == {
        "a": (True, False),
        "b": (False, False),
        "c": (True, True),
        "d": (False, False),
    }


@pytest.mark.parametrize(
    ("dag", "recipes"),
    [
        ("refine", ["web", "web.trial"]),
        ("refine_news", ["news", "news.trial"]),
        ("build_corpus", ["corpus"]),
        ("refined", []),
        ("other", []),
    ],
)
def test_a_right_on_a_dag_is_one_on_the_versions_that_it_makes(dag: str, recipes: list[str]) -> None:
    from refinery_airflow.access.roles import is_reader

    fab = pytest.importorskip("airflow.providers.fab.auth_manager.fab_auth_manager")
    auth, own = fab.FabAuthManager(), (("can_read", f"DAG:{dag}"), ("can_edit", f"DAG:{dag}"))
    user = UserOfFab(("can_edit", "HITL Detail"), *own)
    every = ["web", "web.trial", "news", "news.trial", "corpus", "d", "ned"]
    assert [recipe for recipe in every if is_reader(user, recipe, auth)] == recipes
    assert [recipe for recipe in every if held(user, auth, recipe)[0]] == recipes
    assert [recipe for recipe in every if held(user, auth, recipe)[1]] == []


def of_team(monkeypatch: pytest.MonkeyPatch, *dags: str) -> None:
    """Let users have their roles for these DAGs alone."""
    from airflow.api_fastapi.app import get_auth_manager

    auth = get_auth_manager()
    known = auth.is_authorized_dag

    def is_authorized_dag(*, details: Any = None, **asked: Any) -> bool:
        return details is not None and details.id in dags and known(details=details, **asked)

    monkeypatch.setattr(auth, "is_authorized_dag", is_authorized_dag)


@pytest.mark.parametrize("role", ROLES)
def test_who_has_rights_on_other_dags_gets_nothing_of_a_recipe(
    role: str, ask: Ask, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_team(monkeypatch, "refine", "refine_other", "build_tiny2")
    for route, request in requests(crawl):
        answer = ask(role, request)
        assert (request, shown(answer, crawl.kept | crawl.rejected)) == (request, [])
        assert (request, answer.status_code) == (request, 403) or route.split()[1] in OPEN
        assert (request, "2026-11-20" in answer.text) == (request, False)


def test_who_has_rights_on_one_of_two_recipes_sees_that_one(
    ask: Ask, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_team(monkeypatch, "refine_tiny")
    assert ask("curator", "GET /document/tiny/2026-11-20").status_code == 200
    assert ask("viewer", "GET /snapshot/tiny/2026-11-20").status_code == 200
    assert ask("viewer", "GET /snapshot/corpus/build").status_code == 403
    assert ask("steward", f"GET /manifest/{crawl.path('extract')}").status_code == 403, "it may be of another recipe"
    for asked in ("", "?b=corpus:1", "?a=corpus:1&b=1"):
        assert "corpus" not in ask("viewer", f"GET /compare/tiny{asked}").text.replace("corpus:1", "")
    for asked, status in (("", 403), ("/tiny", 200), ("/tiny/2026-11-20", 200), ("/corpus", 403)):
        answer = ask("curator", f"GET /ask/look-breakdown{asked}?by=site&recipe=corpus")
        assert (asked, answer.status_code, "corpus" in answer.text) == (asked, status, False)
    assert ask("viewer", "GET /ask/look-breakdown/tiny").status_code == 403
    assert ask("viewer", "GET /ask/look-lineage/tiny/2026-11-20").status_code == 200
    assert ask("curator", "GET /ask/why/tiny?what=the").status_code == 404, "it tells of all recipes"
    page = ask("viewer", "GET /page").text
    assert ("/snapshot/tiny/2026-11-20" in page, "/snapshot/corpus/build" in page) == (True, False)


# --- Routes -----------------------------------------------------------------------------------------------------------


def test_each_route_has_a_line_in_the_docs(app: Any, crawl: Crawl) -> None:
    assert sorted(routes(app)) == sorted(roles_of_routes())
    assert sorted(routes(app)) == sorted(addresses(crawl))


def test_each_route_refuses_who_has_not_its_role(ask: Ask, crawl: Crawl) -> None:
    needed = roles_of_routes()
    for route, request in requests(crawl):
        for role in ROLES:
            if ROLES.index(role) < ROLES.index(needed[route]):
                refused = ask(role, request)
                assert (request, role, refused.status_code) == (request, role, 403)
                assert "Ask for a role with that right." in refused.text
    for route in needed.keys() - {"GET /sample/{path:path}"}:  # and it is the role that was missing
        answers = [ask(needed[route], request) for of, request in requests(crawl) if of == route]
        is_form = route.startswith("POST")  # without its token
        assert is_form or any(answer.status_code != 403 for answer in answers), route


def test_a_curator_sees_what_a_stage_behind_scrub_pii_kept(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those before it keep texts with personal data; the addresses of the roots above are all of such stages."""
    path = path_of(published(tmp_path).refined)
    monkeypatch.setenv("REFINERY_ROOT", str(tmp_path))
    page = ask("curator", f"GET /sample/{path}")
    assert (page.status_code, "https://site1.example/1" in page.text) == (200, True)
    assert "Rejected rows are shown to stewards." in page.text
    [look] = access_log.looks(str(tmp_path))
    assert (look.role, look.of, look.rows) == ("curator", {"path": path}, 20)
    assert ask("viewer", f"GET /sample/{path}").status_code == 403


def test_an_id_that_a_source_wrote_is_for_stewards(ask: Ask, crawl: Crawl) -> None:
    day, ids = "tiny/2026-11-20", set[str]()
    for batch in read_shards(crawl.root, read_manifest(crawl.root, crawl.version.refined).shards, ["record_id"]):
        ids.update(batch["record_id"].to_pylist())
    for asked in (
        f"/ask/look-breakdown/{day}?by=record_id",
        f"/ask/look-breakdown/{day}?by=language&across=record_id",
        f"/ask/look-breakdown/{day}?by=record_id&by=record_id",
        "/ask/look-breakdown?by=record_id",
        f"/columns/{day}?by=record_id&where=language%3Den",
        f"/columns/{day}?more=record_id%3Da",
        f"/search/{day}?where=chars>1,record_id!%3Da",
        "/find?where=record_id!%3Da",
        f"/map/{day}?by=record_id",
        f"/intruder/{day}?column=record_id",
    ):
        answer = ask("curator", f"GET {asked}")
        assert (asked, answer.status_code, shown(answer, ids)) == (asked, 403, []) or asked.startswith("/intruder")
        assert (asked, shown(answer, ids)) == (asked, [])
        assert (asked, ask("steward", f"GET {asked}").status_code != 403) == (asked, True)
    answers = [ask(role, "GET /trace/corpus/build?token=200").text for role in ("curator", "steward")]
    assert [bool(re.search(r"<th[^>]*>record</th>", answer)) for answer in answers] == [False, True]


def shown(answer: Any, secrets: set[str]) -> list[str]:
    text = re.sub(r"\s+", " ", answer.text)
    return [secret for secret in secrets if secret in text]


def test_a_viewer_gets_nothing_of_a_crawl_from_any_route(ask: Ask, crawl: Crawl) -> None:
    for _, request in requests(crawl):
        assert (request, shown(ask("viewer", request), crawl.kept | crawl.rejected)) == (request, [])


def test_a_curator_gets_nothing_that_was_rejected_from_any_route(ask: Ask, crawl: Crawl) -> None:
    seen = []
    for _, request in requests(crawl):
        answer = ask("curator", request)
        assert (request, shown(answer, crawl.rejected)) == (request, [])
        seen += [request] if shown(answer, crawl.kept) else []
    routes_seen = {request.split("/")[1].split("?")[0] for request in seen}
    assert routes_seen >= {"search", "document", "find", "trace", "read", "intruder"}


def test_a_steward_gets_what_was_rejected(ask: Ask, crawl: Crawl) -> None:
    seen = {request for _, request in requests(crawl) if shown(ask("steward", request), crawl.rejected)}
    assert {request.split("/")[1].split("?")[0] for request in seen} >= {"rejects", "sample", "document", "files"}


def test_a_curator_cannot_tell_a_rejected_document_from_none(ask: Ask, crawl: Crawl) -> None:
    path = "GET /document/tiny/2026-11-20?doc="
    known, unknown = ask("curator", path + crawl.rejected_id), ask("curator", path + "0" * 32)
    assert known.status_code == unknown.status_code == 404
    assert known.text.replace(crawl.rejected_id, "X") == unknown.text.replace("0" * 32, "X")
    assert ask("steward", path + crawl.rejected_id).status_code == 200


def test_a_curator_gets_no_row_without_words(ask: Ask, crawl: Crawl) -> None:
    request = f"GET /document/tiny/2026-11-20?doc={crawl.kept_id}"
    for role, has_header in (("curator", False), ("steward", True)):
        page = ask(role, request).text
        assert (role, '<th scope="row">record</th>' in page) == (role, has_header)
        assert (role, "<td></td>" in page) == (role, False)


# --- The access log ---------------------------------------------------------------------------------------------------


def test_each_page_that_shows_texts_logs_a_look_without_them(ask: Ask, crawl: Crawl) -> None:
    secrets = crawl.kept | crawl.rejected
    for role in ("curator", "steward"):
        for _, request in requests(crawl):
            before = access_log.look_paths(crawl.root)
            answer = ask(role, request)
            new = [path for path in access_log.look_paths(crawl.root) if path not in before]
            if shown(answer, secrets):
                assert (request, len(new)) == (request, 1)
            for path in new:
                look = access_log.read_look(crawl.root, path)
                assert (look.by, look.through) == (role, "page")
                page, *more = request.partition("?")[0].split("/")[1:]
                assert look.what == (more[0].partition("look-")[2] or more[0] if page == "ask" else page)
                stored = (Path(crawl.root) / path).read_text()
                assert [secret for secret in secrets if secret in stored] == []


def test_a_look_says_what_was_asked_for_and_not_the_words(ask: Ask, crawl: Crawl) -> None:
    day = {"recipe": "tiny", "snapshot": "2026-11-20"}
    for request in ("/search/tiny/2026-11-20?phrase=the", "/search/tiny/2026-11-20?phrase=the+sea+of+names"):
        assert ask("steward", f"GET {request}").status_code == 200
    led = ask("steward", "GET /document/tiny/2026-11-20?doc=my+name+is+ada").url.path
    assert ask("steward", f"GET {led.removeprefix('/refinery')}?what=my+name+is+ada").status_code == 200
    assert ask("steward", f"GET /document/tiny/2026-11-20?doc={crawl.kept_id}").status_code == 200
    *_, first, second, typed, known = access_log.looks(crawl.root)
    assert (first.of, first.role, first.rows > 0, len(first.documents)) == (day, "steward", True, first.rows)
    assert first.asked != second.asked
    assert typed.asked
    assert [words for words in ("my name", "name is", "is ada") if words in str(typed)] == []
    assert (known.of, known.documents, known.asked) == (day | {"doc": crawl.kept_id}, (crawl.kept_id,), "")
    assert all(a.at <= b.at for a, b in pairwise(access_log.looks(crawl.root)))


def test_a_page_whose_look_cannot_be_logged_is_not_shown(
    ask: Ask, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_log, "FOLDER", "publish/x\0")  # a place that no store writes to
    for role in ("curator", "steward"):
        answer = ask(role, f"GET /document/tiny/2026-11-20?doc={crawl.kept_id}")
        assert (answer.status_code, shown(answer, crawl.kept)) == (403, [])
    assert ask("viewer", "GET /page").status_code == 200


def test_a_page_asks_once_a_day_for_a_purpose(
    ask: Ask, visitor: Any, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.access import purpose as refinery_purpose

    monkeypatch.setenv("REFINERY_ACCESS_LOG", "purposes")
    monkeypatch.setattr(refinery_purpose, "_today", lambda: "2030-12-31")
    page = "/search/tiny/2026-11-20?phrase=the"
    asked = ask("curator", f"GET {page}")
    assert (asked.status_code, shown(asked, crawl.kept)) == (403, [])
    assert ask("curator", "GET /snapshot/tiny/2026-11-20").status_code == 200  # without names of sites
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', asked.text))
    assert fields["following"] == f"/refinery{page}"
    send = {**fields, "purpose": "a claim\nof the \x1b[31mharbor"}
    assert visitor.post("/purpose", data=send, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert visitor.post("/purpose", data=send | {"token": "0"}).status_code == 403
    kept = visitor.post("/purpose", data=send, follow_redirects=False)
    assert (kept.status_code, kept.headers["location"]) == (303, f"/refinery{page}")
    assert {"HttpOnly", "SameSite=strict", "Path=/refinery"} <= {*kept.headers["set-cookie"].split("; ")}
    cookie = kept.headers["set-cookie"].split(";")[0]
    visitor.headers["cookie"] = cookie
    assert ask("curator", f"GET {page}").status_code == 200
    *_, last = access_log.looks(crawl.root)
    assert (last.by, last.purpose) == ("curator", "a claim of the [31mharbor")
    assert ask("steward", f"GET {page}").status_code == 403  # a cookie is of one user
    monkeypatch.setattr(refinery_purpose, "_today", lambda: "2031-01-01")
    assert ask("curator", f"GET {page}").status_code == 403
    monkeypatch.setattr(refinery_purpose, "_today", lambda: "2030-12-31")
    assert ask("curator", f"GET {page}").status_code == 200
    for damaged in (
        cookie[:-1],
        "refinery_purpose=.",
        "refinery_purpose=e30=.ab",
        "refinery_purpose=é.é",
        "refinery_purpose=",
    ):
        visitor.headers = {"cookie": damaged.encode()}
        assert ask("curator", f"GET {page}").status_code == 403


@pytest.mark.parametrize(
    "address",
    ["//evil.example/", "https://evil.example/", "/refinery\\@evil", "/refineryx", "/refinery/a\nb", "javascript:x"],
)
def test_the_form_of_the_purpose_leads_to_no_other_site(address: str, app: Any) -> None:
    from refinery_airflow.access.purpose import own_address

    assert own_address(address) == "/refinery/page"
    assert own_address("/refinery/search/web/2026?phrase=a") == "/refinery/search/web/2026?phrase=a"


# --- Pages ------------------------------------------------------------------------------------------------------------


def pages_of(ask: Ask, crawl: Crawl) -> Mapping[str, Any]:
    """Return each page that answers a steward by what was asked; no file, and no Data Docs as they are stored."""
    if not crawl.pages:
        answers = {request: ask("steward", request) for _, request in requests(crawl)}
        crawl.pages |= {request: page for request, page in answers.items() if "/refinery/static/" in page.text}
    return crawl.pages


def test_every_page_has_what_a_keyboard_and_a_screen_reader_need(ask: Ask, crawl: Crawl) -> None:
    for request, page in pages_of(ask, crawl).items():
        assert (request, page.text.count("<h1"), page.text.count("<main")) == (request, 1, 1)
        assert ('<html lang="en">' in page.text, '<a class="skip" href="#main">' in page.text) == (True, True), request
        assert page.text.count("<table") == page.text.count("<caption"), request
        assert re.findall(r"<th(?![^>]*scope=)[ >]|<(?:input|select)(?![^>]*(?:name=|data-keys))", page.text) == [], (
            request
        )


def assert_inert(request: str, page: Any) -> None:
    """A page runs and is styled by files of its own origin alone: nothing in its markup, and nothing evaluated."""
    policy = page.headers["content-security-policy"]
    directives = dict(directive.split(" ", 1) for directive in policy.split("; "))
    assert (directives["default-src"], directives["base-uri"]) == ("'none'", "'none'"), request
    assert (directives["script-src"], directives["style-src"]) == ("'self'", "'self'"), request
    assert "unsafe" not in policy, request
    [script] = re.findall(r"<script[^>]*>", page.text)
    assert re.fullmatch(r'<script src="/refinery/static/[^"]+" data-vega="/refinery/static/[^"]+">', script), request
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", page.text) == [], request


def test_nothing_of_a_crawl_runs_in_a_page(ask: Ask, crawl: Crawl) -> None:
    hostile = replace(crawl, day=HOSTILE, pages={})
    [kept] = [
        row
        for batch in read_shards(crawl.root, read_manifest(crawl.root, hostile.version.refined).shards)
        for row in batch.to_pylist()
    ]
    hostile.kept_id = kept["id"]
    seen = set()
    for request, page in pages_of(ask, hostile).items():
        assert_inert(request, page)
        seen |= {kind_of(request.removeprefix("GET "))} if "&lt;script&gt;alert(1)" in page.text else set()
    assert seen >= {"document", "search", "read", "rejects", "sample", "find"}


def test_what_is_typed_is_escaped_on_every_page(ask: Ask, app: Any, crawl: Crawl) -> None:
    from fastapi.dependencies.utils import get_flat_dependant

    ways = {
        route.path: {param.alias for param in get_flat_dependant(route.dependant).query_params} for route in app.routes
    }
    asked = 0
    for route, [address, *_] in addresses(crawl).items():
        method, path = route.split()
        for name in ways[path] if method == "GET" else ():
            page = ask("steward", f"GET {address.partition('?')[0]}?{name}={quote(chr(34) + SCRIPT)}")
            is_html = page.headers["content-type"].startswith("text/html")
            assert (path, name, is_html and SCRIPT in page.text) == (path, name, False)
            asked += 1
        for name in (crawl.day, "tiny", "corpus") if method == "GET" else ():
            page = ask("steward", f"GET {address.replace(name, quote(NAME))}")
            assert (path, name, NAME in page.text) == (path, name, False)
    assert asked > 30


LEADS_ON = ("ask", "breakdown", "lineage", "similar")
"""Kinds of pages that are questions or lead to one: tests of questions ask for what is not there."""


def test_what_is_not_there_is_a_page_that_says_so(ask: Ask, crawl: Crawl) -> None:
    gone = 0
    for route, [address, *_] in addresses(crawl).items():
        for known, name in ((f"/{crawl.day}", "/2031-01-01"), ("/tiny", "/nothing")):
            if (
                known in address
                and route.startswith("GET")
                and "rows" not in route
                and kind_of(address) not in LEADS_ON
            ):
                page = ask("steward", f"GET {address.replace(known, name)}")
                assert (address, name, page.status_code, "<h1>Not found</h1>" in page.text) == (
                    address,
                    name,
                    404,
                    True,
                )
                gone += 1
    assert gone > 15


def test_the_links_of_every_page_lead_somewhere(ask: Ask, crawl: Crawl) -> None:
    links: dict[tuple[str, str], str] = {}
    for request, page in pages_of(ask, crawl).items():
        found = [html.unescape(link) for link in re.findall(r'<a [^>]*href="([^"]+)"', page.text)]
        assert [link for link in found if not link.startswith(("/", "#", "?"))] == [], request
        own = [link.removeprefix("/refinery") for link in found if link.startswith("/refinery/")]
        links |= {(kind_of(request.removeprefix("GET ")), kind_of(link)): link for link in own}
    assert len(links) > 30
    gone = {kinds: link for kinds, link in links.items() if ask("steward", f"GET {link}").status_code != 200}
    assert gone == {}


def kind_of(address: str) -> str:
    """Return the first word of an address."""
    return re.split("[/?]", address)[1]
