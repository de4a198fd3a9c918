"""ingest keeps pages, rejects every other record with its reason, and recognizes pages of earlier snapshots."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks import stage
from pipeline_tasks.engines import choose
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.errors import ContractError, DigestMismatch
from pipeline_tasks.landing.listing import land
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import Cost, refine, seal
from pipeline_tasks.schema import PAGE, RECORD
from pipeline_tasks.stage import Batches
from pipeline_tasks.stages import ingest
from pipeline_tasks.stages.ingest import DAMAGE, STAGE, Params, drop_unchanged, page_keys, select_pages
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.store.shards import file as shard_file
from pipeline_tasks.upkeep import compact, vacuum
from tests.archives import PAGE as HTML
from tests.archives import http, read, response, warc, zipped
from tests.refining import refined, rows

URL = "https://example.org/"


def record(**fields: Any) -> dict[str, Any]:
    """A sound page, with what a case changes."""
    blank: dict[str, Any] = dict.fromkeys(RECORD.names)
    sound = {
        "source": "crawl", "snapshot": "s", "file": "a.warc.gz", "offset": 0, "length": 9, "record_id": "r", "url": URL,
        "payload_digest": "sha1:A", "kind": "response", "status": 200, "content_type": "text/html", "payload": HTML,
    }  # fmt: skip
    return blank | sound | fields


def table(*records: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(records), RECORD)


def selected(
    records: pa.Table, seen: pa.Table | None = None, size: int = 10_000, **params: Any
) -> list[dict[str, Any]]:
    batches = iter(records.to_batches(max_chunksize=size) or [pa.RecordBatch.from_pylist([], RECORD)])
    return pa.Table.from_batches(chosen(batches, seen, Params(**params))).to_pylist()  # type: ignore[no-any-return]


class Keys:
    """Keys of one place, as what is read behind them."""

    def __init__(self, keys: pa.Table) -> None:
        self.keys = keys

    def rows(self, _: pa.Array) -> pa.Table:
        return self.keys


def chosen(records: Batches, seen: pa.Table | None, params: Params) -> Batches:
    """Yield the records with their verdicts as the kernels of a day with a history give them, or without one."""
    for batch in select_pages(records, params=params, revisits=seen is not None):
        if seen is None:
            yield batch
            continue
        is_kept = batch["reason"].is_null().to_numpy(zero_copy_only=False)
        kept = batch.filter(pa.array(is_kept)).drop_columns(["reason", "evidence"])
        dropped = drop_unchanged(iter([kept]), Keys(seen))
        rows = pa.Table.from_batches([batch.filter(pa.array(~is_kept)), *dropped]).combine_chunks()
        places = np.argsort(np.concatenate([np.flatnonzero(~is_kept), np.flatnonzero(is_kept)]))
        yield from rows.take(pa.array(places)).to_batches()


CASES: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"content_type": "Text/HTML ; charset=x"}, None),
    ({"content_type": "application/xhtml+xml"}, None),
    ({"content_type": "application/xml", "payload": b'<?xml version="1.0"?><html><p>words</p></html>'}, None),
    ({"content_type": "application/xml", "payload": b'<?xml version="1.0"?><rss/>'}, "ingest:not_html"),
    ({"content_type": "text/plain", "payload": b"words"}, None),
    ({"content_type": None}, None),
    ({"content_type": " ", "payload": b"\xef\xbb\xbf\n<!DOCTYPE html><p>"}, None),
    ({"content_type": None, "payload": b"\x00\x01"}, "ingest:not_html"),
    ({"content_type": "image/png"}, None),  # a server's answer in place of a picture
    ({"content_type": "image/png", "payload": b"\x89PNG\r\n\x1a\n"}, "ingest:not_html"),
    ({"payload": b"\x89PNG\r\n\x1a\n"}, "ingest:not_html"),
    ({"content_type": "text/css", "payload": b"p { margin: 0 }"}, "ingest:not_html"),
    ({"content_type": "text/markdown", "payload": b"# words"}, None),
    ({"kind": "resource", "status": None}, None),
    ({"kind": "conversion", "status": None, "content_type": "text/plain", "payload": None, "text": "words"}, None),
    ({"kind": "json", "status": None, "content_type": None, "payload": None, "text": "words"}, None),
    ({"kind": "json", "status": None, "payload": None, "text": " \n\u3000"}, "ingest:empty"),
    ({"payload": b""}, "ingest:empty"),
    ({"payload": None}, "ingest:empty"),
    ({"status": 404}, "ingest:status"),
    ({"status": 301, "payload": b""}, "ingest:status"),
    ({"kind": "warcinfo", "url": None}, "ingest:not_page"),
    ({"kind": "request"}, "ingest:not_page"),
    ({"kind": "metadata"}, "ingest:not_page"),
    ({"url": "dns:example.org", "status": None, "content_type": "text/dns"}, "ingest:not_page"),
    ({"kind": "revisit", "payload": None}, "ingest:revisit"),
    ({"payload": b"<p>" + b"x" * 2000}, "ingest:too_large"),
    ({"kind": "damage", "payload": None, "error": "gzip_corrupt"}, "error:gzip_corrupt"),
    ({"kind": "request", "error": "bad_header"}, "error:bad_header"),
    ({"error": "digest"}, "error:digest"),
]


@pytest.mark.parametrize(("change", "reason"), CASES)
def test_each_record_is_kept_or_rejected_with_its_reason(change: dict[str, Any], reason: str | None) -> None:
    (row,) = selected(table(record(**change)), max_bytes=2000)
    assert row["reason"] == reason
    assert reason is None or reason in STAGE.reasons
    kept = reason is None
    assert (row["evidence"] is None) == kept
    assert (row["payload"] is not None or row["text"] is not None) == kept
    assert (row["offset"], row["length"], row["file"]) == (0, 9, "a.warc.gz")
    assert kept or json.loads(row["evidence"])["kind"] == change.get("kind", "response")


def test_a_record_with_a_wrong_digest_is_kept_where_the_recipe_says_so() -> None:
    marked = record(error="digest", metadata='{"digest_mismatch":"payload digest differs"}')
    rows = table(marked, record(error="digest", status=404), record(error="bad_length", payload=None), record())
    kept = selected(rows, keep_digest_mismatch=True)
    assert [row["reason"] for row in kept] == [None, "ingest:status", "error:bad_length", None]
    assert (kept[0]["payload"], json.loads(kept[0]["metadata"])) == (
        HTML,
        {"digest_mismatch": "payload digest differs"},
    )
    refused = selected(rows)
    assert [row["reason"] for row in refused] == ["error:digest", "error:digest", "error:bad_length", None]
    assert refused[0]["payload"] is None


PROSE = "Plain words about the river and the mill, which nobody marked up. " * 9
HTML_TEXTS = [
    f"<!DOCTYPE html><html><head><title>T</title></head><body><p>{PROSE}</p></body></html>",
    f"<html><body><p>{PROSE}",
    f"<!DOCTYPE HTML>\n<p>{PROSE}",
    f"\ufeff\n <!-- saved -->\n<HTML lang=en>\n<body>{PROSE}</body></HTML>",
    f'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x">\n<html><p>{PROSE}</p></html>',
    f"<body><p>{PROSE}</body>",
    f"<div class=a><h1>Title</h1><p>{PROSE}</p></div>\n",
    f"<p>{PROSE}</p>" * 3,
]
OTHER_TEXTS = [
    PROSE,
    f"{PROSE} The tag <b> makes <i>text</i> bold, </b> ends it. " * 9,
    f"<b>{PROSE}</b>",
    f"<p> begins a paragraph and </p> ends it. {PROSE}",
    f"A page begins with `<!DOCTYPE html><html><body>`, and ends with </body></html>. {PROSE}",
    "<!DOCTYPE html> is the first line of a page. " + PROSE,
    "<html> is the root element",
    f"```html\n<div><p>{PROSE}</p></div>\n```",
    f'<?xml version="1.0"?><rss><channel><item>{PROSE}</item></channel></rss>',
    f"<Alice> hello\n<Bob> {PROSE}\n<Alice> bye >",
    "<p><<<>>><p>" + PROSE * 99 + "<p>",
    "a < b and c > d",
    "",
]


@pytest.mark.parametrize(
    ("text", "is_html"),
    [*((text, True) for text in HTML_TEXTS), *((text, False) for text in OTHER_TEXTS if text)],
    ids=lambda value: f"{value!s:.30}",
)
def test_texts_that_are_html_go_through_extraction_and_others_stay(text: str, *, is_html: bool) -> None:
    bare = record(kind="json", status=None, content_type=None, payload=None, text=text)
    (row,) = selected(table(bare))
    assert (row["payload"] is not None, row["text"] is None) == (is_html, is_html)
    assert row["content_type"] == ("text/html; charset=utf-8" if is_html else None)
    assert (row["payload"].decode() if is_html else row["text"]) == text
    (left,) = selected(table(bare), extract_html=False)
    assert (left["payload"], left["text"], left["content_type"]) == (None, text, None)


def test_batches_of_any_size_give_the_same_rows() -> None:
    records = table(*(record(offset=at, **change) for at, (change, _) in enumerate(CASES)))
    whole = selected(records, max_bytes=2000)
    assert [selected(records, size=size, max_bytes=2000) for size in (1, 7)] == [whole, whole]


def test_no_records_give_an_empty_table_of_pages() -> None:
    out = pa.Table.from_batches(select_pages(iter([pa.RecordBatch.from_pylist([], RECORD)]), params=Params()))
    assert (out.num_rows, out.schema.names) == (0, [*PAGE.names, "reason", "evidence"])


def seen(*records: dict[str, Any]) -> pa.Table:
    return pa.Table.from_batches(page_keys(iter(table(*records).to_batches())))


@given(
    known=st.lists(st.integers(0, 40), max_size=30),
    asked=st.lists(st.none() | st.integers(0, 40), max_size=30),
    cut=st.integers(0, 5),
)
def test_pages_are_unchanged_whose_keys_were_seen(known: list[int], asked: list[int | None], cut: int) -> None:
    """Also among keys that share their first half, and in slices of arrays."""
    seen = Keys(pa.table({"key": pa.array([_key(number) for number in known], pa.binary())}))
    keys = pa.array([None if number is None else _key(number) for number in asked], pa.binary()).slice(cut)
    pages = table(*[record()] * len(keys)).combine_chunks().to_batches()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "_keys", lambda _: keys)
        dropped = [*drop_unchanged(iter(pages), seen)]
    reasons = [reason for batch in dropped for reason in batch["reason"].to_pylist()]
    assert reasons == ["ingest:unchanged" if number in {*known} else None for number in asked[cut:]]


def _key(number: int) -> bytes:
    return (number // 4).to_bytes(8, "little") + (number % 4).to_bytes(8, "little")


def test_a_page_seen_before_is_unchanged_and_a_changed_one_is_not() -> None:
    earlier = seen(record(), *(record(url=f"{URL}{at}") for at in range(1000)))
    now = table(
        record(),
        record(payload_digest="sha1:B"),
        record(url=URL + "new"),
        record(url=URL + "7"),
        record(url=None, payload_digest=None),
        record(kind="revisit", payload=None),
        record(kind="revisit", payload=None, payload_digest="sha1:B"),
        record(
            kind="revisit", url=URL + "x", payload=None, metadata=json.dumps({"warc-refers-to-target-uri": f"<{URL}>"})
        ),
        record(status=404),
    )
    reasons = [row["reason"] for row in selected(now, earlier)]
    unchanged = "ingest:unchanged"
    assert reasons == [unchanged, None, None, unchanged, None, unchanged, "ingest:revisit", unchanged, "ingest:status"]


def test_the_same_page_twice_in_one_file_is_kept_twice() -> None:
    assert [row["reason"] for row in selected(table(record(), record(offset=9)))] == [None, None]


def crawl(folder: Path, name: str, *files: bytes) -> str:
    (folder / name).mkdir()
    for at, data in enumerate(files):
        (folder / name / f"{at}.warc.gz").write_bytes(data)
    return str(folder / name)


ARCHIVES = {
    "a.warc.gz": b"".join(
        zipped([response(URL), response(URL + "gone", http(status="404 Gone")), response(URL + "b")])
    ),
    "b.warc": response(URL + "c") + response(URL + "d"),
}
LINES = {
    "c.jsonl": b'{"text": "The river rises in the hills.", "url": "https://example.org/e"}\n{"text": ""}\n'
    b'{"text": "<!doctype html><html><p>A page in a text.</p></html>", "url": "https://example.org/f"}\n',
}


@pytest.mark.parametrize(("files", "count"), [(ARCHIVES, 4), (LINES, 2)])
@pytest.mark.parametrize("batch_rows", [1, 4096])
def test_payloads_stay_in_the_landed_files_and_are_read_from_there(
    tmp_path: Path, batch_rows: int, files: dict[str, bytes], count: int
) -> None:
    landing, root = tmp_path / "monday", tmp_path / "root"
    landing.mkdir()
    for name, content in files.items():
        (landing / name).write_bytes(content)
    parent = land(str(root), str(landing))[0]
    _, manifest = refined(root, "ingest", parent, landing=str(landing), batch_rows=batch_rows)
    expected = [row for name in files for row in selected(pa.Table.from_pylist(read(files[name], name), RECORD))]
    kept = [{name: row[name] for name in PAGE.names} for row in expected if row["reason"] is None]
    pages = rows(root, manifest, landing=str(landing)).to_pylist()
    named = [sorted(({**row, "snapshot": ""} for row in part), key=lambda row: row["url"]) for part in (pages, kept)]
    assert named[0] == named[1]
    assert len(pages) == count
    with pytest.raises(ContractError, match=rf"{re.escape(str(root))}: .*({'|'.join(map(re.escape, files))})"):
        list(read_shards(str(root), manifest.shards))
    assert len(list(read_shards(str(root), manifest.shards, ["url"]))) == len(files)
    shutil.rmtree(landing)
    rejected = rows(root, manifest, "rejects").to_pylist()  # what is not kept is read without the landed files
    assert [row["reason"] for row in rejected] == [row["reason"] for row in expected if row["reason"]]
    assert {(row["payload"], row["text"]) for row in rejected} <= {(None, None)}


@pytest.mark.parametrize("spans", [(), ((0, 1), (1, 2))])
def test_a_file_that_landed_twice_is_read_under_both_names(tmp_path: Path, spans: tuple[tuple[int, int], ...]) -> None:
    """Their tasks, and their partitions, were taken for one: the rows of one file had the name of the other."""
    landing, root = tmp_path / "monday", str(tmp_path / "root")
    landing.mkdir()
    for name in ("a.warc.gz", "b.warc.gz"):
        (landing / name).write_bytes(ARCHIVES["a.warc.gz"])
    request = RefineRequest(root, "ingest", {}, land(root, str(landing))[0], landing=str(landing))
    for span in spans:
        refine(replace(request, span=span), LocalEngine)
    _, manifest, _ = seal(request, spans) if spans else refine(request, LocalEngine)
    kept = rows(Path(root), manifest, landing=str(landing)).to_pylist()
    assert sorted(row["file"] for row in kept) == ["a.warc.gz"] * 2 + ["b.warc.gz"] * 2
    assert manifest.rows_in == 6


@pytest.mark.parametrize("what", ["changed", "gone"])
def test_a_landed_file_that_is_not_as_it_was_ingested_is_refused_by_extract(tmp_path: Path, what: str) -> None:
    monday = crawl(tmp_path, "monday", ARCHIVES["a.warc.gz"])
    path, _ = refined(tmp_path / "root", "ingest", land(str(tmp_path / "root"), monday)[0], landing=monday)
    file = tmp_path / "monday" / "0.warc.gz"
    file.write_bytes(zipped([response(URL + "other")])[0]) if what == "changed" else file.unlink()
    with pytest.raises(ContractError, match=re.escape(str(file))) as refusal:
        refined(tmp_path / "root", "extract", path, landing=monday)
    assert refusal.type is (DigestMismatch if what == "changed" else ContractError)


@pytest.mark.slow
def test_a_file_that_vanishes_after_it_was_listed_is_named(any_root: str, tmp_path: Path) -> None:
    """In a folder and in a bucket; before, that was the store's own FileNotFoundError."""
    landing = f"{any_root}-landed/monday"
    place = storage.connect(landing)
    for name in ("a", "b"):
        place.create(f"{name}.warc.gz", b"".join(zipped([response(URL + name)])))
    (tmp_path / "root").mkdir()
    manifest = land(str(tmp_path / "root"), landing, "monday")[0]
    place.delete("b.warc.gz")
    with pytest.raises(ContractError, match=re.escape(f"{landing}/b.warc.gz") + ".* monday "):
        refined(tmp_path / "root", "ingest", manifest, landing=landing)


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_shard_that_was_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, in_memory: bool) -> None:
    monday = crawl(tmp_path, "monday", b"".join(zipped([response(URL)])))
    path, manifest = refined(tmp_path / "root", "ingest", land(str(tmp_path / "root"), monday)[0], landing=monday)
    if not in_memory:
        monkeypatch.setattr(shard_file, "IN_MEMORY_BYTES", 0)
    (tmp_path / "root" / manifest.shards[0].path).unlink()
    with pytest.raises(ContractError, match=re.escape(manifest.shards[0].path)):
        refined(tmp_path / "root", "extract", path)


def test_the_next_snapshot_recognizes_pages_of_this_one(tmp_path: Path) -> None:
    gone = response(URL + "gone", http(status="404 Gone"))
    files = (b"".join(zipped([response(URL), gone])), b"".join(zipped([response(URL + "b")])) + b"rubbish")
    monday = crawl(tmp_path, "monday", *files)
    first, manifest = refined(tmp_path / "root", "ingest", land(str(tmp_path / "root"), monday)[0], landing=monday)
    assert (manifest.rejected, manifest.quarantined) == ({"ingest:status": 1}, {"error:gzip_corrupt": 1})
    assert (manifest.rows_in, rows(tmp_path / "root", manifest, landing=monday).num_rows) == (4, 2)
    assert rows(tmp_path / "root", manifest, landing=monday).schema.names == PAGE.names
    tuesday = crawl(tmp_path, "tuesday", b"".join(zipped([response(URL + name) for name in ("", "gone", "c")])))
    landed = land(str(tmp_path / "root"), tuesday)[0]
    _, manifest = refined(tmp_path / "root", "ingest", landed, history=[first], landing=tuesday)
    assert manifest.rejected == {"ingest:unchanged": 1}
    assert sorted(rows(tmp_path / "root", manifest, landing=tuesday)["url"].to_pylist()) == [URL + "c", URL + "gone"]


def published(root: Path, name: str, landing: str) -> Cost:
    """Ingest a crawl after all that were published before it, and publish it."""
    before = tuple(version.manifests["ingest"] for version in version_log.earlier(str(root), "ours", name))
    path, _, cost = refine(
        RefineRequest(str(root), "ingest", {}, land(str(root), landing)[0], before, landing), LocalEngine
    )
    facts = {"recipe": "ours", "snapshot": name, "landing": landing, "verdicts": {}, "prefix": "", "documents": 0}
    version_log.append(str(root), {**facts, "manifests": {"ingest": path}, "tokens": 0, "sequences": 0})
    return cost


def pages(name: str, count: int) -> bytes:
    return b"".join(zipped([response(f"{URL}{name}/{at}") for at in range(count)]))


def test_a_file_reads_only_the_history_of_its_own_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight days of unequal numbers of files, as they are and merged: the same bytes, and a page for each key."""
    monkeypatch.setattr(compact, "FANOUT", 8)
    root, apart = tmp_path / "root", tmp_path / "apart"
    for number in range(8):
        files = [pages(f"{number}/{file}", 600) for file in range(1 + number % 3)]
        published(root, f"d{number}", crawl(tmp_path, f"d{number}", *files))
    shutil.copytree(root, apart)
    [merged] = compact.compact(str(root), LocalEngine)
    assert (merged.rows_in, len(merged.history_shards)) == (600 * sum(1 + number % 3 for number in range(8)), 1)
    news = zipped([response(f"{URL}{name}/0") for name in ("0/0", "4/1", "7/1", "new")])
    last = crawl(tmp_path, "last", b"".join(news), pages("other", 5))
    spent = {path: published(path, "last", last).history_reads for path in (root, apart)}
    paths = {path: version_log.current(str(path), "ours").manifests["ingest"] for path in (root, apart)}
    assert (root / paths[root]).read_bytes() == (apart / paths[apart]).read_bytes()
    manifest = read_manifest(str(root), paths[root])
    assert (manifest.rows_in, manifest.rows, manifest.rejected) == (9, 6, {"ingest:unchanged": 3})
    assert spent[root]["rows"] <= 9 * 128
    assert spent[root]["pages"] <= 9 + 2 * 3  # for each file the index's root page and the one below it


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.slow)])
def test_keys_are_looked_up_by_buckets_where_there_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setattr(stage, "PARALLEL_BYTES", 100)  # of 4 MB, which is a hundred thousand pages
    root = tmp_path / "root"
    published(root, "d0", crawl(tmp_path, "d0", pages("same", 90)))
    landing = crawl(tmp_path, "d1", pages("same", 99), pages("other", 5))
    before = tuple(version.manifests["ingest"] for version in version_log.earlier(str(root), "ours", "d1"))
    request = RefineRequest(str(root), "ingest", {}, land(str(root), landing)[0], before, landing)
    _, manifest, _ = refine(request, choose.engine(engine))
    assert (manifest.rows, manifest.rejected) == (14, {"ingest:unchanged": 90})


def test_a_day_of_many_files_is_compacted_by_itself_and_looked_up_once(tmp_path: Path) -> None:
    """A lookup asks for every segment of a day, of which each file has one: merged, they are one for all files."""
    root, apart = tmp_path / "root", tmp_path / "apart"
    published(root, "d0", crawl(tmp_path, "d0", *(pages(f"0/{file}", 2) for file in range(compact.FANOUT))))
    shutil.copytree(root, apart)
    [merged] = compact.compact(str(root), LocalEngine)
    assert (len(merged.parents), len(merged.history_shards), merged.rows_in) == (1, 1, 2 * compact.FANOUT)
    assert compact.compact(str(root), LocalEngine) == []
    news = crawl(tmp_path, "d1", *(pages(f"0/{file}", 3) for file in range(5)))
    spent = {path: published(path, "d1", news).history_reads for path in (root, apart)}
    own = 5  # each file asks for its own keys that were seen
    requests = spent[root]["requests"], spent[apart]["requests"]
    assert requests == (1 + own, compact.FANOUT + own), "history is not asked for each of 5 files"
    paths = {path: version_log.current(str(path), "ours").manifests["ingest"] for path in (root, apart)}
    assert (root / paths[root]).read_bytes() == (apart / paths[apart]).read_bytes()
    assert read_manifest(str(root), paths[root]).rejected == {"ingest:unchanged": 10}
    unused = vacuum.find_orphans(str(root), 0.0).files
    assert not [entry for entry, _ in unused if entry.path.startswith("compacted/")]


@pytest.mark.parametrize(("place_bytes", "most"), [(ingest.PLACE_BYTES, 1.1), (4000, 2.5)])
def test_a_file_gets_those_seen_keys_that_are_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place_bytes: int, most: float
) -> None:
    """Each got those of all files: above 134 million a column of Arrow had no room for them."""
    monkeypatch.setattr(ingest, "PLACE_BYTES", place_bytes)
    spent = {}
    for count in (2, 8):
        root, files = tmp_path / f"root{count}", [pages(str(file), 400) for file in range(count)]
        for day in ("d0", "d1"):
            landing = crawl(tmp_path, f"{day} of {count}", *files)
            spent[count] = published(root, day, landing).history_reads.get("rows", 0)
        manifest = read_manifest(str(root), version_log.current(str(root), "ours", "d1").manifests["ingest"])
        assert (manifest.rows, manifest.rejected) == (0, {"ingest:unchanged": 400 * count})
    assert spent[8] <= most * 4 * spent[2]


def test_a_day_of_few_files_stays_as_it_is(tmp_path: Path) -> None:
    published(tmp_path / "root", "d0", crawl(tmp_path, "d0", *(pages(str(file), 2) for file in range(3))))
    assert compact.compact(str(tmp_path / "root"), LocalEngine) == []


def test_rejects_of_a_day_with_a_history_need_no_landed_file(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("d0", "d1"):
        gone = b"".join(zipped([response(URL + name, http(b"", status="404 Not Found"))]))
        published(root, name, crawl(tmp_path, name, pages("same", 3), gone))
    manifest = read_manifest(str(root), version_log.current(str(root), "ours", "d1").manifests["ingest"])
    shutil.rmtree(tmp_path / "d1")
    batches = list(read_shards(str(root), manifest.rejects))
    rejected = pa.Table.from_batches(batches).to_pylist()
    assert sorted((row["reason"], row["kind"]) for row in rejected) == [
        ("ingest:status", "response"), *[("ingest:unchanged", "response")] * 3,
    ]  # fmt: skip
    assert all(row["payload"] is None and row["text"] is None and row["url"] for row in rejected)


def test_every_error_of_a_reader_is_known() -> None:
    broken = [
        *read(response(URL, http(b"5\r\nabc", headers="Transfer-Encoding: chunked")), "a.warc"),
        *read(b"".join(zipped([response(URL)]))[:-9]),
        *read(warc("response", b"", URL, length="x"), "a.warc"),
        *read(b'{"text": 1}\n{"a": 1}\n{"text": "a", "text": "b"}\n{', "a.jsonl"),
        *read(b"<html>", "a.warc"),
        *read(b""),
    ]
    assert {row["error"] for row in broken} <= set(DAMAGE)
    assert len(broken) == 9


def test_a_real_snapshot_keeps_its_pages_and_the_next_one_its_news(shared_data: Path) -> None:
    pages: list[pa.Table] = []
    tally: dict[str, list[str | None]] = {}
    for snapshot in ("dev-2026-45", "dev-2026-46"):
        files = sorted((shared_data / "snapshots" / snapshot).glob("*.warc.gz"))
        records = [pa.Table.from_pylist(read(path.read_bytes(), path.name), RECORD) for path in files]
        known = pa.concat_tables([seen_pages(page) for page in pages]) if pages else None
        selected_pages = [select(table, known) for table in records]
        tally[snapshot] = [reason for pages_of_file in selected_pages for reason in pages_of_file["reason"].to_pylist()]
        pages += selected_pages
    assert len(tally["dev-2026-46"]) > 900
    assert tally["dev-2026-45"].count(None) == 1811
    assert "ingest:revisit" not in tally["dev-2026-46"]
    # 23 revisit records, and pages that were fetched again in full without a change
    assert tally["dev-2026-46"].count("ingest:unchanged") >= 23
    assert not any(reason and reason.startswith("error:") for reasons in tally.values() for reason in reasons)


def select(records: pa.Table, known: pa.Table | None) -> pa.Table:
    return pa.Table.from_batches(chosen(iter(records.to_batches()), known, Params()))


def seen_pages(pages: pa.Table) -> pa.Table:
    return pa.Table.from_batches(page_keys(iter(pages.filter(pages["reason"].is_null()).to_batches())))
