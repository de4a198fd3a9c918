"""extract turns pages into documents, and a page that hangs or kills the extractor costs only itself."""

import gzip
import json
import re
import resource
import signal
import sys
import time
from collections import Counter
from hashlib import sha1
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.schema import LOCATOR, PAGE, RECORD
from pipeline_tasks.stages import ingest
from pipeline_tasks.stages.extract import EXTRACTED, LEAST_MEMORY, METHODS, STAGE, Params, extract_pages
from pipeline_tasks.text.page import sandbox, sandbox_pair
from pipeline_tasks.text.page.identity import identity
from pipeline_tasks.text.page.sandbox import Sandbox
from pipeline_tasks.text.page.sandbox_messages import ANSWER, Limits, Page
from tests.archives import read
from tests.examples import few_examples
from tests.refining import commit_parent, refined

PROSE = "The river was low that summer, and the children walked across it on stones to the mill. " * 8
HTML = f"<html><head><title>The  mill</title></head><body><nav><a href=/>Home</a></nav><p>{PROSE}</p></body></html>"


def page(
    html: str | bytes | None = HTML, content_type: str | None = "text/html", text: str | None = None, at: int = 0
) -> dict[str, Any]:
    origin = {name: f"a {name}" for name in LOCATOR.names} | {"offset": at, "length": 9}
    payload = html.encode() if isinstance(html, str) else html
    return origin | {"content_type": content_type, "payload": payload, "text": text, "metadata": None}


def extracted(pages: list[dict[str, Any]], size: int = 10_000, **params: Any) -> list[dict[str, Any]]:
    batches = pa.Table.from_pylist(pages, PAGE).to_batches(max_chunksize=size)
    out = pa.Table.from_batches(
        extract_pages(iter(batches or [pa.RecordBatch.from_pylist([], PAGE)]), params=Params(**params))
    )
    assert out.schema.names == [*EXTRACTED.names, "reason", "evidence"]
    documents: list[dict[str, Any]] = out.to_pylist()
    assert {row["reason"] for row in documents} <= {None, *STAGE.reasons}
    return documents


@pytest.mark.parametrize("method", METHODS)
def test_a_page_becomes_a_document(method: str) -> None:
    (row,) = extracted([page()], method=method)
    assert row["text"] == PROSE.strip()
    assert (row["title"], row["chars"], row["reason"]) == ("The mill", len(PROSE.strip()), None)
    assert row["id"] == identity(PROSE)
    assert {name: row[name] for name in LOCATOR.names} == {name: page()[name] for name in LOCATOR.names}


LATER = "Nobody had repaired the roof of the barn since the great storm, and so the rain came in for years. " * 4


@pytest.mark.parametrize("method", METHODS)
def test_coverage_is_the_share_of_the_pages_sentences_that_the_text_has(method: str) -> None:
    whole, half = page(), page(HTML.replace("<p>", f"<div hidden><p>{LATER}</p></div><p>"))
    rows = extracted([whole, half, page(PROSE, "text/plain"), page("<p>No sentence" + " of words" * 20)], method=method)
    assert [row["coverage"] for row in rows] == [1.0, pytest.approx(0.64, abs=0.03), None, None]


@pytest.mark.parametrize(
    ("encoding", "prose"), [("koi8-r", "Летом река обмелела, и дети переходили её. " * 9), ("utf-16", PROSE)]
)
def test_a_page_of_any_encoding_has_its_coverage(encoding: str, prose: str) -> None:
    (row,) = extracted([page(f"<title>x</title><p>{prose}</p>".encode(encoding), f"text/html; charset={encoding}")])
    assert (row["text"], row["coverage"]) == (prose.strip(), 1.0)


def test_a_text_that_is_rejected_has_its_coverage() -> None:
    (row,) = extracted([page()], min_chars=10_000)
    assert (row["reason"], row["coverage"]) == ("extract:too_short", 1.0)


def test_plain_text_and_ready_text_are_only_normalized() -> None:
    plain = page("Gru\u0308ße\r\n" + PROSE, "text/plain; charset=utf-8")
    ready = page(None, "text/plain", text="Gru\u0308ße\r\n" + PROSE)
    bodies = [row["text"] for row in extracted([plain, ready])]
    assert bodies == ["Grüße\n" + PROSE.strip()] * 2


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("", "extract:empty"),
        ("<script>x</script>", "extract:empty"),
        ("<p>Short.</p>", "extract:too_short"),
        ("<p>" + "broken \ufffd words " * 99, "error:charset"),
        (None, "extract:empty"),
    ],
)
def test_what_is_no_document_is_rejected(html: str | bytes | None, reason: str) -> None:
    before, row, after = extracted([page(), page(html), page()])
    assert row["reason"] == reason
    assert json.loads(row["evidence"])
    assert before["reason"] is after["reason"] is None


@pytest.mark.parametrize(
    ("depth", "method"), [(300, "trafilatura"), (5000, "trafilatura"), (5000, "justext"), (20_000, "resiliparse")]
)
def test_deep_nesting_loses_no_text(depth: int, method: str) -> None:
    (row,) = extracted([page("<div>" * depth + f"<p>{PROSE}</p>" + "</div>" * depth)], method=method)
    assert PROSE.strip() in row["text"]


def test_a_page_that_hangs_native_code_costs_itself() -> None:
    table = "<table>" + "<tr><td>cell</td></tr>" * 100_000 + "</table>"
    documents = extracted(
        [page(), page(table), page(), page(table), page()], method="trafilatura", fallback=(), seconds=0.5
    )
    timeout = "extract:timeout"
    assert [row["reason"] for row in documents] == [None, timeout, None, timeout, None]
    assert json.loads(documents[1]["evidence"]) == {"seconds": 0.5}


def test_a_page_that_takes_all_memory_costs_itself() -> None:
    giant = "<b>" * 9_000_000
    documents = extracted([page(), page(giant), page()], memory=LEAST_MEMORY)
    assert [row["reason"] for row in documents] == [None, "error:extractor_crash", None]


def test_too_little_memory_for_blocks_is_refused() -> None:
    with pytest.raises(RecipeError, match="method blocks takes"):
        Params(memory=LEAST_MEMORY - 1)
    assert Params(method="resiliparse", memory=400 << 20).memory == 400 << 20


def test_a_native_crash_costs_itself() -> None:
    table = "<table>" + "<tr><td>cell</td></tr>" * 500_000 + "</table>"  # minutes of work for trafilatura
    pages = [Page(html.encode(), "text/html") for html in (HTML, table, HTML)]
    others = children()
    with Sandbox(Limits(seconds=60)) as extractor:
        list(extractor.process("trafilatura", pages[:1]))
        (child,) = children() - others
        killer = Thread(target=kill_after, args=(child, 0.5))
        killer.start()
        before, at, after = extractor.process("trafilatura", pages)
        killer.join()
    assert (at.outcome, at.detail) == ("crash", "extractor ended with -11")
    assert bytes(before.text).decode().strip() == bytes(after.text).decode().strip() == PROSE.strip()
    assert child not in children()


def kill_after(child: int, seconds: float) -> None:
    """Kill a child when it has used so many seconds of its processor, however long that takes."""
    process = psutil.Process(child)
    end = sum(process.cpu_times()[:2]) + seconds
    while sum(process.cpu_times()[:2]) < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGSEGV)


def children() -> set[int]:
    return {int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


WORDS = re.findall(
    "[a-z]+", "rope sail mast hull keel deck anchor rudder tiller boom winch cleat shroud stay halyard sheet"
)
NOTHING = "<html><body><ul>" + "".join(f"<li>{word}</li>" for word in WORDS) + "</ul></body></html>"
LINKS = "<html><body><ul>" + "".join(f"<li><a href=/>{word}</a></li>" for word in WORDS) + "</ul></body></html>"


def test_what_finds_nothing_falls_back() -> None:
    pages = [page(), page(NOTHING), page("<p></p>"), page(LINKS), page("Plain. " * 99, "text/plain")]
    alone = extracted(pages, method="justext", fallback=(), min_chars=50)
    assert [row["reason"] for row in alone] == [None, *["extract:empty"] * 3, None]
    assert [row["extractor"] for row in alone] == [*["justext"] * 4, "plain"]
    whole = extracted(pages, method="justext", fallback=["trafilatura", "resiliparse"], min_chars=50)
    assert [row["extractor"] for row in whole] == ["justext", "trafilatura", "justext", "justext", "plain"]
    assert [row["reason"] for row in whole] == [None, None, "extract:empty", "extract:empty", None]
    assert whole[1]["text"].split()[-1] == WORDS[-1]
    assert whole[1]["id"] == identity(whole[1]["text"])
    assert extracted(pages, 1, method="justext", fallback=["trafilatura", "resiliparse"], min_chars=50) == whole


def test_what_is_too_short_falls_back_to_what_is_longer() -> None:
    short = page(f"<html><body><aside>{PROSE}</aside><p>{PROSE[:87]}</p></body></html>")
    wanted = {(): "resiliparse", ("trafilatura",): "resiliparse", ("trafilatura", "justext"): "justext"}
    documents = {fallback: extracted([page(), short], method="resiliparse", fallback=fallback) for fallback in wanted}
    assert {fallback: rows[1]["extractor"] for fallback, rows in documents.items()} == wanted
    reasons = [rows[1]["reason"] for rows in documents.values()]
    assert reasons == ["extract:too_short", "extract:too_short", None]
    assert {rows[0]["extractor"] for rows in documents.values()} == {"resiliparse"}
    (enough,) = extracted([short], method="resiliparse", fallback=("trafilatura", "justext"), min_chars=20)
    assert (enough["extractor"], enough["reason"], enough["chars"]) == ("resiliparse", None, 87)


ITEMS = "".join(f"<p>Part {number} of it. {PROSE}</p>" for number in range(9))
LOSING = {
    "all": f"<html><body><div id=sidebar>{ITEMS}</div></body></html>",
    "nearly all": f"<html><body><p>{PROSE[:150]}</p><div class=modal>{ITEMS}</div></body></html>",
}


@pytest.mark.parametrize("kind", LOSING)
def test_an_article_that_the_method_loses_is_extracted_by_the_next_one(kind: str) -> None:
    pages = [page(), page(LOSING[kind])]
    alone = extracted(pages, method="resiliparse")
    assert [row["extractor"] for row in alone] == ["resiliparse"] * 2
    assert alone[1]["chars"] < len(PROSE) / 3
    both: dict[str, Any] = {"method": "resiliparse", "fallback": ("trafilatura", "justext")}
    whole = extracted(pages, **both)
    assert whole[0] == alone[0]
    assert whole[1]["extractor"] in {"trafilatura", "justext"}
    assert PROSE.strip() in whole[1]["text"]
    assert extracted(pages, 1, **both) == extracted(pages, **both) == whole


PUBLISHED = (
    '<html><head><title>The  mill</title><meta property="og:type" content="article"></head><body>{}</body></html>'
)
CLEAN = PUBLISHED.format("<h1>The mill</h1>" + "".join(f"<p>Part {number}. {PROSE}</p>" for number in range(9)))
RAGGED = PUBLISHED.format(
    "<div><p><a href=/>Home</a></p><p><a href=/n>News</a></p><p><a href=/m>Mills</a></p><p>3 May</p></div>"
    + "".join(f"<p>Part {number}. {PROSE}</p>" for number in range(9))
)


def test_blocks_give_the_text_of_a_page_whatever_is_around_it() -> None:
    pages = [page(CLEAN), page(RAGGED), page("<h1>The mill</h1>" + HTML), page("Plain. " * 99, "text/plain")]
    found = extracted(pages)
    assert [row["extractor"] for row in found] == ["blocks", "blocks", "blocks", "plain"]
    assert found[0]["text"].startswith("The mill\n\nPart 0. The river")
    assert "Home" not in found[1]["text"]
    assert extracted(pages, 1) == found


def test_a_text_has_seams_only_where_something_was_left_out() -> None:
    html = CLEAN.replace("<p>Part 4", "<h2>Tides</h2><h2>Ebb and flood</h2><p>Part 4")
    gone = html.replace("<h2>Ebb", "<div hidden>Moon</div><nav><a href=/>Home</a></nav><h2>Ebb")
    plain = f"{PROSE}\n\nAs follows:\n\n# Tides\n\n# Ebb\n\n{PROSE}\n\nMore:"
    pages = [page(html), page(gone), page(plain, "text/plain"), page(None, "text/plain", text=plain)]
    rows = extracted(pages, output="markdown")
    assert all("## Tides\n\n## Ebb" in row["text"] for row in rows[:2])
    assert [row["seams"] for row in rows] == [0, 1, 0, 0]


def test_markdown_is_an_output_of_blocks_alone() -> None:
    table = "<h2>Tides</h2><table><tr><th>High</th><th>Low</th></tr><tr><td>3 m</td><td>1 m</td></tr></table>"
    pages = [page(html.replace("<p>Part 4", f"{table}<p>Part 4")) for html in (CLEAN, RAGGED)]
    for row in extracted(pages, output="markdown"):
        assert "\n\n## Tides\n\n| High | Low |\n| --- | --- |\n| 3 m | 1 m |\n\nPart 4" in row["text"]
    for row in extracted(pages):
        assert "\n\nTides\n\nHigh\tLow\n3 m\t1 m\n\nPart 4" in row["text"]
    with pytest.raises(RecipeError, match="method blocks, and resiliparse gives plain text"):
        Params(method="resiliparse", output="markdown")


@given(st.lists(st.binary(max_size=200) | st.sampled_from([CLEAN.encode(), RAGGED.encode()]), min_size=1, max_size=4))
@few_examples
def test_any_bytes_give_the_same_rows_in_any_batches(payloads: list[bytes]) -> None:
    pages = [page(b'<meta property="og:type">' * (at % 2) + data, at=at) for at, data in enumerate(payloads)]
    whole = extracted(pages, min_chars=1)
    assert extracted(pages, 1, min_chars=1) == whole
    assert len(whole) == len(pages)


def test_a_page_with_little_to_see_is_not_extracted_twice() -> None:
    pages = [page("<p>Short.</p>"), page(f"<nav><a href=/>{'link ' * 30}</a></nav><p>{PROSE[:300]}</p>")]
    assert extracted(pages, fallback=("trafilatura", "justext")) == extracted(pages)


def test_mojibake_is_repaired_and_counted() -> None:
    text = "Schöne Grüße aus Köln, wo die Straßen naß sind.\n" * 3
    wrong = text.encode().decode("cp1252")
    html = f"<title>Grüße</title><pre>{text}{wrong}</pre>"
    mangled = f"<title>{'Grüße aus Köln'.encode().decode('cp1252')}</title><pre>{text}{wrong}</pre>"
    sound, repaired, ready = extracted([page(html), page(mangled), page(None, "text/plain", text=text + wrong)])
    assert sound["text"] == repaired["text"] == ready["text"] == (text * 2).strip()
    assert (sound["title"], repaired["title"]) == ("Grüße", "Grüße aus Köln")
    assert [row["repaired"] for row in (sound, repaired, ready)] == [3, 3, 3]
    assert repaired["id"] == identity(text * 2)
    (left,) = extracted([page(html)], repair=False)
    assert (left["text"], left["repaired"]) == ((text + wrong).strip(), 0)


def test_metadata_of_a_page_is_kept() -> None:
    meta = '<meta property="article:published_time" content="{}">'
    header = {"metadata": '{"http-content-language":"fr-CH, de"}', "crawled_at": "2026-11-20T01:02:03Z"}
    pages = [
        page(f"<html lang=de><head>{meta.format('2026-11-20')}</head><p>{PROSE}</p>") | header,
        page(f"<html><head>{meta.format('2026-11-21')}</head><p>{PROSE}</p>") | header,
        page(None, "text/plain", text=PROSE),
    ]
    documents = [(row["html_language"], row["published"]) for row in extracted(pages)]
    assert documents == [("de", "2026-11-20"), ("fr-ch", None), (None, None)]


def test_a_page_that_the_crawler_cut_is_marked() -> None:
    heads = ['{"warc-truncated":"length"}', '{"warc-truncated":" Time "}', '{"warc-truncated":"lunch"}', "{}", None]
    documents = extracted([page() | {"metadata": head} for head in heads])
    assert [row["truncated"] for row in documents] == ["length", "time", "unspecified", None, None]


def test_a_child_is_kept_for_the_next_shard_until_it_is_closed() -> None:
    others = children()
    extracted([page()])
    kept = children() - others
    extracted([page()])
    assert children() - others == kept
    extracted([page()], seconds=5)  # other limits, another child
    assert len(children() - others) == 1
    sandbox_pair.close_idle()
    assert children() <= others


def test_what_a_dead_child_left_behind_is_no_answer() -> None:
    """A page cannot answer for another one: what is behind the last answer has another window's number."""
    fake = ANSWER.pack(1, 0, 0, 4, -1, 4) + b"FAKE\0\0\0\0"
    giant = "<b>" * 9_000_000
    with Sandbox(Limits(memory=400 << 20)) as extractor:
        windows = [list(extractor.process("resiliparse", [Page(b"<pre>" + fake * 500, "text/html")]))]
        windows += [
            list(
                extractor.process("resiliparse", [Page(giant.encode(), "text/html"), Page(HTML.encode(), "text/html")])
            )
        ]
    assert [[result.outcome for result in results] for results in windows] == [["done"], ["crash", "done"]]


def test_ready_text_that_is_broken_is_an_error() -> None:
    broken = page(None, "text/plain", text="words \ufffd " * 99)
    (row,) = extracted([broken])
    assert row["reason"] == "error:charset"


def test_what_hangs_or_dies_falls_back() -> None:
    table = f"<p>{PROSE}</p><table>" + "<tr><td>cell</td></tr>" * 100_000 + "</table>"
    documents = extracted([page(), page(table), page()], method="trafilatura", fallback=["resiliparse"], seconds=2)
    assert [row["extractor"] for row in documents] == ["trafilatura", "resiliparse", "trafilatura"]
    assert [row["reason"] for row in documents] == [None, None, None]
    assert documents[1]["text"].startswith(PROSE.strip())


def test_pages_larger_than_a_window_and_many_small_ones_keep_their_order() -> None:
    large = f"<p>{PROSE}</p><!--" + "x" * (9 << 20) + "-->"
    pages = [page(large if at % 7 == 3 else f"<p>Page {at}. {PROSE}</p>", at=at) for at in range(30)]
    texts = [row["text"] for row in extracted(pages)]
    assert texts == [PROSE.strip() if at % 7 == 3 else f"Page {at}. {PROSE.strip()}" for at in range(30)]


def test_a_process_that_cannot_start_is_no_fault_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox_pair.close_idle()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ChildProcessError):
        extracted([page()])


def children_spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_the_cost_of_a_stage_has_the_processor_time_of_its_extractors(tmp_path: Path) -> None:
    sandbox_pair.close_idle()
    pages = [page(f"<p>Page {at}. {PROSE}</p>" * 20, at=at) for at in range(100)]
    parent = commit_parent(tmp_path, [pa.Table.from_pylist(pages, PAGE)])
    before = children_spent()
    request = RefineRequest(str(tmp_path), "extract", {"method": "justext"}, parent)
    cost = refine(request, LocalEngine).cost
    sandbox_pair.close_idle()
    spent = children_spent() - before
    assert spent > 0.2
    assert spent / 2 < cost.cpu


def test_a_child_that_hangs_has_cost_what_it_used() -> None:
    sandbox_pair.close_idle()
    before, ended = sandbox.seconds_spent(), children_spent()
    table = "<table>" + "<tr><td>cell</td></tr>" * 100_000 + "</table>"
    (row,) = extracted([page(table)], method="trafilatura", fallback=(), seconds=1)
    assert row["reason"] == "extract:timeout"
    assert 1 <= sandbox.seconds_spent() - before <= children_spent() - ended + 0.01


@pytest.mark.parametrize("params", [{"method": "magic"}, {"fallback": ["magic"]}], ids=str)
def test_an_unknown_method_is_refused(tmp_path: Path, params: dict[str, Any]) -> None:
    parent = commit_parent(tmp_path, [pa.Table.from_pylist([page()], PAGE)])
    with pytest.raises(RecipeError, match=r"extract: .*'magic'"):
        refined(tmp_path, "extract", parent, params)


def test_real_articles_keep_their_beginnings(shared_data: Path) -> None:
    gold = [
        json.loads(line) for line in gzip.decompress((shared_data / "gold/goose3.jsonl.gz").read_bytes()).splitlines()
    ]
    wanted = {entry["payload_sha1"]: entry["cleaned_text_prefix"] for entry in gold if entry.get("cleaned_text_prefix")}
    path = shared_data / "snapshots/dev-2026-45/dev-2026-45-web-00000.warc.gz"
    pages = {sha1(row["payload"]).hexdigest(): row for row in read(path.read_bytes(), path.name) if row["payload"]}
    known = sorted(wanted.keys() & pages.keys())
    assert len(known) > 10
    documents = extracted([page(pages[digest]["payload"], pages[digest]["content_type"]) for digest in known])
    shares = [overlap(row["text"] or "", wanted[digest]) for digest, row in zip(known, documents, strict=True)]
    print(len(shares), sum(shares) / len(shares))
    assert sum(shares) / len(shares) > FLOOR


FLOOR = 0.9
"""Share of the words of a gold beginning that the extracted text has; measured 0.93, may only go up."""


def overlap(text: str, wanted: str) -> float:
    have, want = Counter(text.split()), Counter(wanted.split())
    return (have & want).total() / want.total()


def test_a_real_snapshot_gives_documents(shared_data: Path) -> None:
    path = shared_data / "snapshots/dev-2026-45/dev-2026-45-open-00000.warc.gz"
    records = pa.Table.from_pylist(read(path.read_bytes(), path.name)[:200], RECORD)
    pages = pa.Table.from_batches(ingest.select_pages(iter(records.to_batches()), params=ingest.Params()))
    kept = pages.filter(pages["reason"].is_null()).select(PAGE.names)
    documents = extracted(kept.to_pylist())
    assert sum(row["reason"] is None for row in documents) > 0.95 * kept.num_rows
    assert len(documents) == kept.num_rows > 50
    assert not any(row["reason"] and row["reason"].startswith("error") for row in documents)
