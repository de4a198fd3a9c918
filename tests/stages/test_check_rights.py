"""check_rights: what a planted crawl says of its use, from where, and what becomes of its pages."""

import gzip
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.listing import land
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.schema import PAGE, RIGHTS, ROBOTS
from pipeline_tasks.stages.check_rights import (
    AGENTS,
    ROBOTS_FILES,
    ROBOTS_RECORD,
    STAGE,
    Params,
    RobotsFile,
    _Answer,
    changed_files,
    read_signals,
    said_of,
)
from pipeline_tasks.store.reading import read_shards
from tests.archives import http, warc
from tests.refining import refined, rows
from tests.xmp import packet

TEXT = b"<p>%s</p>" % (b"A sentence of plain words. " * 12)
HTML = "Content-Type: text/html"
REJECTING = {"robots_txt": "reject", "content_usage": "reject", "tdm_reservation": "reject", "noai": "reject"}

_numbers = itertools.count()


def page(url: str, head: str = "", headers: str = "", date: str = "2026-11-20T12:00:00Z") -> bytes:
    """A page with some markup in its head, and header fields."""
    body = b"<html><head>%s</head><body>%s</body></html>" % (head.encode(), TEXT)
    return record(url, http(body, headers=f"{HTML}\r\n{headers}" if headers else HTML), date)


def robots(
    host: str, body: str = "", status: str = "200 OK", headers: str = "", date: str = "2026-11-20T06:00:00Z"
) -> bytes:
    plain = "Content-Type: text/plain"
    return record(
        f"{host}/robots.txt", http(body.encode(), status, f"{plain}\r\n{headers}" if headers else plain), date
    )


def record(url: str, block: bytes, date: str) -> bytes:
    written = warc("response", block, url, Content_Type="application/http; msgtype=response")
    return written.replace(b"2026-11-20T00:00:00Z", date.encode(), 1)


def landed(folder: Path, *files: Sequence[bytes]) -> Path:
    folder.mkdir(parents=True)
    for number, records in enumerate(files):
        (folder / f"{number:05}.warc.gz").write_bytes(b"".join(gzip.compress(each, mtime=0) for each in records))
    return folder


def checked(
    root: Path, *files: Sequence[bytes], on: tuple[str, str] = ("local", ""), batch_rows: int = 4096, **params: Any
) -> Manifest:
    """Land files, and refine them by `ingest` and `check_rights`."""
    folder = landed(Path(f"{root}-landed{next(_numbers)}"), *files)
    how: Mapping[str, Any] = {"landing": str(folder), "on": on[0], "address": on[1], "batch_rows": batch_rows}
    ingested, _ = refined(root, "ingest", land(str(root), str(folder), "day")[0], {"rights": True}, **how)
    return refined(root, "check_rights", ingested, params, **how)[1]


def rows_of(root: Path, manifest: Manifest, part: str = "shards") -> list[dict[str, Any]]:
    """Return rows without what is in the landed file."""
    shards = manifest.history[part] if part in manifest.history else getattr(manifest, part)
    if part in manifest.history:
        return rows(root, manifest, part).to_pylist()  # type: ignore[no-any-return]
    columns = [*(name for name, _ in manifest.schema if name not in ("payload", "text"))]
    columns += ["reason", "evidence"] if part == "rejects" else []
    return [row for batch in read_shards(str(root), shards, columns) for row in batch.to_pylist()]


def rights_of(root: Path, manifest: Manifest, part: str = "shards") -> dict[str, list[tuple[str, ...]]]:
    """Return what is known of each page: signal, value, source and agent of each of its rights."""
    names = ("signal", "value", "source", "agent")
    return {
        row["url"]: [tuple(right[name] for name in names) for right in row["rights"]]
        for row in rows_of(root, manifest, part)
    }


def reasons(root: Path, manifest: Manifest) -> dict[str, str]:
    rejected = rows_of(root, manifest, "rejects")
    return {row["url"]: row["reason"] for row in rejected if row["reason"] != ROBOTS_RECORD}


def test_a_pdf_says_by_its_packet_what_a_page_says_by_its_markup(tmp_path: Path) -> None:
    """Text of a PDF that looks like markup says nothing."""
    reserved = packet("", 't:reservation="1"') + b'<meta name="robots" content="noai">'
    pdf = http(reserved, headers="Content-Type: application/pdf")
    quoted = http(b"A text about packets. " * 9 + reserved[9:], headers="Content-Type: text/plain")
    records = [record("http://a.example/a.pdf", pdf, "2026-11-20T12:00:00Z")]
    records.append(record("http://a.example/a.txt", quoted, "2026-11-20T12:00:00Z"))
    folder = landed(tmp_path / "landed", records)
    params, root = {"rights": True, "types": ["html", "text", "pdf"]}, tmp_path / "root"
    ingested, _ = refined(root, "ingest", land(str(root), str(folder), "day")[0], params, landing=str(folder))
    manifest = refined(root, "check_rights", ingested, {}, landing=str(folder))[1]
    found = rights_of(root, manifest)
    assert found == {"http://a.example/a.pdf": [("tdm_reservation", "1", "xmp", "*")], "http://a.example/a.txt": []}


# --- Signals of every kind -------------------------------------------------------------------------------------------

SAID: list[tuple[str, str, list[tuple[str, ...]]]] = [
    ("", "X-Robots-Tag: noai, noimageai", [("noai", "noai", "http x-robots-tag", "*"), ("noimageai",)]),
    ("", "X-Robots-Tag: GPTBot: noai", [("noai", "noai", "http x-robots-tag", "GPTBot")]),
    ("", "X-Robots-Tag: googlebot: noindex\r\nX-Robots-Tag: noml", [("noml", "noml", "http x-robots-tag", "*")]),
    ("", "X-Robots-Tag: none", [("noindex", "none")]),
    ("", "X-Robots-Tag: unavailable_after: 25 Jun 2027 15:00:00 PST", []),
    ("", "Content-Usage: train-ai=n, search=y", [("content_usage", "train-ai=n", "http content-usage", "*")]),
    ("", "Content-Usage: search=n", [("search", "search=n", "http content-usage", "*")]),
    ("", "Content-Usage: train-ai=y", [("permitted", "train-ai=y")]),
    ("", "Content-Usage: train-ai=n\r\nContent-Usage: train-ai=y", [("content_usage", "train-ai=n")]),
    (
        "",
        "TDM-Reservation: 1\r\nTDM-Policy: https://x.example/p.json",
        [("tdm_reservation", "1; policy https://x.example/p.json", "http tdm-reservation", "*")],
    ),
    ("", "tdm-reservation: 0", [("permitted", "tdm-reservation=0")]),
    (
        "",
        'Link: </wp-json/>; rel="api", <https://x.example/l.xml>; rel="license"; type="application/rsl+xml"',
        [("rsl", "https://x.example/l.xml", "http link", "*")],
    ),
    ('<meta name="robots" content="noai, noimageai">', "", [("noai", "noai", "html meta", "*"), ("noimageai",)]),
    ("<META NAME=ROBOTS CONTENT=NOAI>", "", [("noai",)]),
    ("<meta content='index,nocache' name='robots'/>", "", [("noarchive", "nocache")]),
    ('<meta name="ClaudeBot" content="noindex">', "", [("noindex", "noindex", "html meta", "ClaudeBot")]),
    ('<meta name="googlebot" content="noindex">', "", []),
    ('<!-- <meta name="robots" content="noai"> -->', "", []),
    ('<script>\'<meta name="robots" content="noai">\'</script>', "", []),
    (
        '<meta name="tdm-reservation" content="1"><meta name="tdm-policy" content="https://x.example/p">',
        "",
        [("tdm_reservation", "1; policy https://x.example/p", "html meta", "*")],
    ),
    (
        '<link rel="license" href="https://creativecommons.org/licenses/by-nc/4.0/">',
        "",
        [("license", "https://creativecommons.org/licenses/by-nc/4.0/", "html link", "*")],
    ),
    (
        '<link rel="license" type="application/rsl+xml" href="/rsl.xml">',
        "",
        [("rsl", "/rsl.xml", "html link", "*")],
    ),
    (
        '<script type="application/rsl+xml"><rsl><prohibits type="usage">ai-train, ai-index</prohibits></rsl></script>',
        "",
        [
            ("content_usage", "rsl prohibits ai-train", "html script", "*"),
            ("rsl", "prohibits ai-train,ai-index", "html script", "*"),
        ],
    ),
    ('<a href="/terms" rel="nofollow LICENSE">terms</a>', "", [("license", "/terms", "html a", "*")]),
    ("<a href='/license'>our license</a>", "", []),
    ("", "X-Robots-Tag: max-snippet:-1, noai", [("noai", "noai", "http x-robots-tag", "*")]),
]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    root = tmp_path_factory.mktemp("planted")
    pages = [page(f"https://planted.example/{n}", head, headers) for n, (head, headers, _) in enumerate(SAID)]
    return root, checked(root, pages)


@pytest.mark.parametrize("number", range(len(SAID)))
def test_a_page_says_what_was_planted(number: int, planted: tuple[Path, Manifest]) -> None:
    wanted = SAID[number][2]
    said = rights_of(*planted)[f"https://planted.example/{number}"]
    assert [right[: len(want)] for right, want in zip(said, wanted, strict=True)] == wanted


AI_CLOSED = """
User-agent: GPTBot
User-agent: CCBot
Disallow: /

User-agent: *
Allow: /
Disallow: /search
Content-Usage: train-ai=n
Content-Usage: /open/ train-ai=y
License: https://closed.example/rsl.xml
"""
ROBOTS_TXT, CLOSED = "robots.txt", "https://closed.example"


def test_a_robots_txt_says_for_each_agent_what_its_line_is(tmp_path: Path) -> None:
    pages = [page(f"{CLOSED}/{path}") for path in ("a", "open/b", "search?q=1")]
    manifest = checked(tmp_path, pages, [robots(CLOSED, AI_CLOSED)], agents=["GPTBot", "CCBot", "ClaudeBot"])
    closed = [("robots_txt", "Disallow: /", ROBOTS_TXT, agent) for agent in ("GPTBot", "CCBot")]
    no = ("content_usage", "train-ai=n", ROBOTS_TXT, "*")
    rsl = ("rsl", f"{CLOSED}/rsl.xml", ROBOTS_TXT, "*")
    assert rights_of(tmp_path, manifest) == {
        f"{CLOSED}/a": [*closed, no, rsl],
        f"{CLOSED}/open/b": [*closed, rsl, ("permitted", "train-ai=y", ROBOTS_TXT, "*")],
        f"{CLOSED}/search?q=1": [*closed, ("robots_txt", "Disallow: /search", ROBOTS_TXT, "*"), no, rsl],
    }
    assert {right["at"] for row in rows_of(tmp_path, manifest) for right in row["rights"]} == {"2026-11-20T06:00:00Z"}
    assert manifest.rejected == {ROBOTS_RECORD: 1}


def test_what_cloudflare_writes_into_robots_txt_is_a_preference(tmp_path: Path) -> None:
    text = "User-Agent: *\nContent-Signal: search=yes,ai-train=no\nAllow: /\n"
    manifest = checked(tmp_path, [page("https://cf.example/"), robots("https://cf.example", text)])
    assert rights_of(tmp_path, manifest)["https://cf.example/"] == [("content_usage", "ai-train=no", ROBOTS_TXT, "*")]


OF_HOSTS: list[tuple[str, list[bytes], str | None]] = [
    ("https://a.example/", [], None),
    ("https://a.example/", [robots("https://a.example")], "allowed"),
    ("https://a.example/", [robots("https://a.example", "User-agent: *\nDisallow: /")], "disallowed"),
    ("https://a.example/", [robots("https://a.example", "x", "404 Not Found")], "allowed"),
    ("https://a.example/", [robots("https://a.example", "x", "503 Busy")], "unreachable"),
    ("https://a.example/", [robots("http://a.example")], None),
    ("https://a.example/", [robots("https://www.a.example")], None),
    ("https://a.example/", [robots("https://a.example:8443")], None),
    ("https://A.example:443/", [robots("https://a.EXAMPLE")], "allowed"),
    ("https://a.example/", [robots("https://a.example", "", "301 Moved", "Location: https://b.example/robots.txt"),
                            robots("https://b.example", "User-agent: *\nDisallow: /")], "disallowed"),
    ("https://a.example/", [robots("https://a.example", "", "301 Moved", "Location: /lost")], None),
    ("https://a.example/", [robots("https://a.example", "", "302 Found", "Location: https://a.example/robots.txt")], None),
    ("https://a.example/", [robots("https://a.example", "", "301 Moved", "Location: https://b.example/robots.txt"),
                            robots("https://b.example", "", "301 Moved", "Location: https://a.example/robots.txt")], None),
    ("https://a.example/", [robots("https://a.example", "User-agent: *\nDisallow: /", date="2026-11-20T05:00:00Z"),
                            robots("https://a.example", "", date="2026-11-20T11:00:00Z"),
                            robots("https://a.example", "User-agent: *\nDisallow: /", date="2026-11-20T13:00:00Z")],
     "allowed"),
    ("https://a.example/", [robots("https://a.example", "User-agent: *\nDisallow: /", date="2026-11-20T13:00:00Z"),
                            robots("https://a.example", "", date="2026-11-20T14:00:00Z")], "disallowed"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(OF_HOSTS)))
def test_the_robots_txt_in_force_is_that_of_the_host_at_the_time(number: int, tmp_path: Path) -> None:
    url, answers, state = OF_HOSTS[number]
    manifest = checked(tmp_path, answers, [page(url)])
    assert [row["robots_txt"] for row in rows_of(tmp_path, manifest)] == [state]


def test_of_a_large_robots_txt_500_kib_are_read(tmp_path: Path) -> None:
    late = "User-agent: *\n" + "Allow: /x\n" * (60 << 10) + "Disallow: /\n"
    assert len(late) > 500 << 10
    manifest = checked(tmp_path, [robots("https://a.example", late), page("https://a.example/")])
    assert [row["robots_txt"] for row in rows_of(tmp_path, manifest)] == ["allowed"]


# --- The policy ------------------------------------------------------------------------------------------------------

POLICY = [
    robots("https://a.example", "User-agent: CCBot\nDisallow: /no"),
    page("https://a.example/no", headers="X-Robots-Tag: noai"),
    page("https://a.example/yes", headers="X-Robots-Tag: noindex"),
    page("https://a.example/ai", '<meta name="robots" content="noai">'),
    page("https://a.example/tdm", headers="TDM-Reservation: 1"),
    page("https://a.example/plain", '<link rel="license" href="//creativecommons.org/licenses/by-sa/4.0/deed.de">'),
]


def test_a_policy_rejects_with_the_strongest_signal_as_reason(tmp_path: Path) -> None:
    manifest = checked(tmp_path, POLICY, **REJECTING)
    assert reasons(tmp_path, manifest) == {
        "https://a.example/no": "check_rights:robots_txt",
        "https://a.example/ai": "check_rights:noai",
        "https://a.example/tdm": "check_rights:tdm_reservation",
    }
    assert (manifest.rows, manifest.rows_in, sum(manifest.rejected.values())) == (2, 6, 4)
    by_url = {row["url"]: row for row in rows_of(tmp_path, manifest, "rejects")}
    assert json.loads(by_url["https://a.example/no"]["evidence"]) == {
        "rights": [
            {"signal": "robots_txt", "value": "Disallow: /no", "source": ROBOTS_TXT, "agent": "CCBot",
             "at": "2026-11-20T06:00:00Z"},
            {"signal": "noai", "value": "noai", "source": "http x-robots-tag", "agent": "*"},
        ]
    }  # fmt: skip
    assert json.loads(by_url["https://a.example/robots.txt"]["evidence"]) == {"status": 200}
    assert set(manifest.rejected) <= set(STAGE.reasons)


def test_a_policy_tags_or_keeps(tmp_path: Path) -> None:
    manifest = checked(tmp_path, POLICY, tdm_reservation="keep", noindex="tag")
    kept = {row["url"]: row for row in rows_of(tmp_path, manifest)}
    assert {url: row["opt_out"] for url, row in kept.items()} == {
        "https://a.example/no": "robots_txt",
        "https://a.example/yes": "noindex",
        "https://a.example/ai": "noai",
        "https://a.example/tdm": None,
        "https://a.example/plain": None,
    }
    assert kept["https://a.example/plain"]["license"] == "CC-BY-SA-4.0"
    assert kept["https://a.example/tdm"]["rights"][0]["signal"] == "tdm_reservation"
    assert [name for name, _ in manifest.schema] == [*PAGE.names, *RIGHTS.names]


def test_another_policy_reads_no_page_again(tmp_path: Path) -> None:
    first = checked(tmp_path, POLICY)
    for file in tmp_path.parent.glob(f"{tmp_path.name}-landed*/*"):
        file.write_bytes(b"")
    ingested = next((tmp_path / "ingest").glob("*/manifest*.json"))
    _, again = refined(tmp_path, "check_rights", str(ingested.relative_to(tmp_path)), REJECTING)
    assert again.fingerprint != first.fingerprint
    assert again.rejected["check_rights:noai"] == 1


def test_nothing_is_said_of_hosts_whose_robots_txt_did_not_land(tmp_path: Path) -> None:
    without = checked(tmp_path, [page("https://a.example/")])
    with_one = checked(tmp_path, [page("https://a.example/"), robots("https://a.example")])
    assert STAGE.idle is not None
    assert [len(STAGE.idle(Params(), each.metrics["kept"])) for each in (without, with_one)] == [1, 0]
    assert STAGE.idle(Params(), {}) == ()


# --- The same on every engine ----------------------------------------------------------------------------------------


def crawl() -> list[list[bytes]]:
    """A crawl in three files, in which a host has many pages and its robots.txt changes."""
    hot = [page(f"https://hot.example/{'no' if n % 3 else 'yes'}/{n}", date=f"2026-11-20T{n % 24:02}:30:00Z")
           for n in range(60)]  # fmt: skip
    answers = [robots("https://hot.example", f"User-agent: *\nDisallow: /no/{n % 5}", date=f"2026-11-20T{n:02}:00:00Z")
               for n in range(0, 24, 2)]  # fmt: skip
    return [[*hot[:20], *answers[6:]], [*answers[:6], *hot[20:], *POLICY], [page("https://b.example/")]]


def outcome(root: Path, manifest: Manifest) -> list[Any]:
    """Everything that a run says, whatever its order."""
    parts = [sorted(rows_of(root, manifest, part), key=str) for part in ("shards", "rejects", "robots")]
    return [*parts, manifest.rejected, manifest.metrics]


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_batches_of_any_size_are_the_same(batch_rows: int, tmp_path: Path) -> None:
    whole = checked(tmp_path / "whole", *crawl(), **REJECTING)
    cut = checked(tmp_path / "cut", *crawl(), batch_rows=batch_rows, **REJECTING)
    assert outcome(tmp_path / "whole", whole) == outcome(tmp_path / "cut", cut)
    assert whole.rejected["check_rights:robots_txt"] > 5


def test_how_records_are_spread_over_files_changes_nothing(tmp_path: Path) -> None:
    """Robots.txt files need not be in the file of their pages."""
    apart = checked(tmp_path / "apart", *crawl(), **REJECTING)
    joined = checked(tmp_path / "joined", [each for records in crawl() for each in records], **REJECTING)
    assert rights_of(tmp_path / "apart", apart) == rights_of(tmp_path / "joined", joined)
    assert reasons(tmp_path / "apart", apart) == reasons(tmp_path / "joined", joined)


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("spark", marks=pytest.mark.nightly), "ray"])
def test_every_engine_says_the_same(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    calm = checked(tmp_path / "calm", *crawl(), **REJECTING)
    there = checked(tmp_path / name, *crawl(), on=(name, request.getfixturevalue(name)), **REJECTING)
    assert outcome(tmp_path / name, there) == outcome(tmp_path / "calm", calm)
    assert there.shards == calm.shards


def test_a_hot_host_costs_the_robots_txt_files_that_differ(tmp_path: Path) -> None:
    """A host that is asked every hour, and says the same, has one row."""
    hourly = [robots("https://a.example", "User-agent: *", date=f"2026-11-20T{n:02}:00:00Z") for n in range(24)]
    manifest = checked(tmp_path, hourly, [page("https://a.example/")])
    assert len(rows_of(tmp_path, manifest, "robots")) == 1


@pytest.mark.parametrize("size", [1, 2, 100])
def test_answers_that_repeat_are_left_out_across_batches(size: int) -> None:
    said = [("a", b"1"), ("a", b"1"), ("a", b"2"), ("a", b"1"), ("b", b"1"), ("b", b"1"), ("b", b"1")]
    rows_given = [
        dict.fromkeys(ROBOTS_FILES.names) | {"origin": host, "body": body, "offset": n}
        for n, (host, body) in enumerate(said)
    ]
    batches = pa.Table.from_pylist(rows_given, ROBOTS_FILES).to_batches(max_chunksize=size)
    kept = pa.Table.from_batches(changed_files(iter(batches)))
    assert kept["offset"].to_pylist() == [0, 2, 3, 4]


# --- Anything ------------------------------------------------------------------------------------------------------


@given(
    payload=st.binary(max_size=300) | st.sampled_from([b"<meta name=robots content='noai", b"<a rel=license href=x"]),
    fields=st.dictionaries(st.sampled_from(["x-robots-tag", "content-usage", "tdm-reservation", "link"]), st.text()),
    kind=st.sampled_from(["response", "json", ROBOTS]),
)
def test_any_bytes_are_read(payload: bytes, fields: dict[str, str], kind: str) -> None:
    row = dict.fromkeys(PAGE.names) | {
        "url": "https://a.example/",
        "kind": kind,
        "content_type": "text/html",
        "payload": payload,
        "metadata": json.dumps({"http-rights": fields}),
    }
    (batch,) = read_signals(iter(pa.Table.from_pylist([row], PAGE).to_batches()), agents=AGENTS)
    assert batch.num_rows == 1
    answer = RobotsFile("https://a.example", 0, "f", 0, None, 200, None, batch["robots_body"][0].as_py() or payload)
    assert said_of("https://a.example/x", _Answer(answer, AGENTS)).state in ("allowed", "disallowed")


@pytest.mark.parametrize("url", ["https://[/x", "https://a.example:x/", "https://", "about:blank", "https://a b/"])
def test_any_address_is_looked_up(url: str, tmp_path: Path) -> None:
    manifest = checked(tmp_path, [page(url), robots("https://a.example", "User-agent: *\nDisallow: /")])
    assert manifest.rows_in == 2


# --- The recipe ----------------------------------------------------------------------------------------------------


def test_a_recipe_with_the_stage_lets_robots_txt_through() -> None:
    recipe = parse_recipe({"stages": {"ingest": None, "check_rights": None, "extract": None}}, "r.yaml")
    assert recipe.step("ingest").params == {"rights": True}
    with pytest.raises(RecipeError, match="check_rights"):
        parse_recipe({"stages": {"ingest": {"rights": True}, "extract": None}}, "r.yaml")


@pytest.mark.parametrize("params", [{"agents": ["CC Bot"]}, {"noai": "drop"}, {"agents": [""]}])
def test_a_policy_that_makes_no_sense_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(RecipeError, match="check_rights"):
        parse_recipe({"stages": {"ingest": None, "check_rights": params}}, "r.yaml")


def test_without_the_stage_records_are_what_they_were(tmp_path: Path) -> None:
    """Header fields that only check_rights reads are not stored, and a robots.txt is the record that it was."""
    folder = landed(Path(f"{tmp_path}-landed"), [page("https://a.example/", headers="TDM-Reservation: 1"), *POLICY[:2]])
    _, manifest = refined(tmp_path, "ingest", land(str(tmp_path), str(folder), "day")[0], landing=str(folder))
    assert [row["metadata"] for row in rows_of(tmp_path, manifest) if "http-rights" in str(row)] == []
    assert {row["kind"] for row in rows_of(tmp_path, manifest)} == {"response"}
