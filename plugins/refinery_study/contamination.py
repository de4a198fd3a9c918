"""List the hits of evaluation sets in published snapshots; search for a new set by sketches alone.

Shards are read on an engine, and what a task returns of a document is what is shown of it.
"""

import argparse
import textwrap
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.binding import bind
from pipeline_tasks.counted import counted
from pipeline_tasks.engines.each import HERE, On, Work
from pipeline_tasks.engines.workers import Workers
from pipeline_tasks.errors import ContractError, RecipeError, RefineryError
from pipeline_tasks.inspect.command import (
    EVERY,
    add_engine,
    add_snapshot,
    number,
    on_of,
    print_result,
    recipe_of,
    versions_of,
)
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.libraries import release
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.datasets.building import file_of
from pipeline_tasks.publish.datasets.published_shards import open_build
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.published import read_published_file
from pipeline_tasks.recipe import COMPOSE, load_recipe
from pipeline_tasks.sealed import digest_of, path_of
from pipeline_tasks.stage import FilePath, Shard
from pipeline_tasks.stages.decontaminate import STAGE, Params, bounds_of, evidence, read_reference, read_texts
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import newest
from pipeline_tasks.store.reading import parent_of, read_manifest, read_shards

if TYPE_CHECKING:  # they load numba
    from pipeline_tasks.text.near.evaluation_index import Reference
    from pipeline_tasks.text.near.matches import Bounds

pc: Any = pyarrow.compute

WHO = ("id", "url", "file", "offset")
AROUND = 60
"""Characters shown on each side of a hit."""

WIDTH = 56
LINES = 8
REJECTED, CUT, KEPT = "rejected", "cut", "kept"

VERB = "contamination"
"""The verb over a whole root, as recipes name it in `run: engines:`."""

WORKERS = Workers(4)
"""How many shards this machine reads at a time."""

Files = Mapping[str, str]
"""Benchmark -> path of its file."""

Screened = tuple[version_log.Version, tuple[version_log.Version, ...]]
"""A version of a snapshot, and the versions of training datasets that were composed of it."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One text of a benchmark in one document: `spans` in characters, `found` the first span with the text around it.

    `outcome` is what the stage did: `rejected`, `cut`, or `kept` where a benchmark was added later; `published` is
    whether the document is in the tokens. `reference` is the benchmark's text, "" where its file is not known.
    """

    recipe: str
    snapshot: str
    outcome: str
    published: bool
    id: str
    url: str
    file: str
    offset: int
    benchmark: str
    item: int
    part: str
    field: str
    method: str
    score: float
    spans: Sequence[Sequence[int]]
    found: tuple[str, str, str]
    reference: str


@dataclass(frozen=True, slots=True)
class Scan:
    """Counts of a search in one snapshot: documents, bytes of their sketches, candidates read, and hits."""

    recipe: str
    snapshot: str
    documents: int
    sketch_bytes: int
    candidates: int
    hits: int


# --- Hits in manifests ----------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the snapshot, and the benchmarks to list or to search for."""
    add_snapshot(parser, EVERY)
    parser.add_argument("--benchmark", default="", help="only hits of this benchmark")
    parser.add_argument("--file", action="append", default=[], metavar="NAME=FILE", help="where a benchmark's file is")
    parser.add_argument("--add", action="append", default=[], metavar="[NAME=]FILE", help="search for a new benchmark")
    parser.add_argument("--part", action="append", default=[], metavar="FIELD=KIND", help="question, answer or passage")
    parser.add_argument("--limit", type=number(int, 0), default=20, metavar="N", help="show at most N hits (20)")
    add_engine(parser)


def answer(options: argparse.Namespace) -> int:
    """Print the hits that the snapshots' manifests list, or with `--add` those of a new benchmark."""
    return _answer_added(options) if options.add else _answer_listed(options)


def _answer_added(options: argparse.Namespace) -> int:
    scans: list[Scan] = []
    hits: list[Hit] = []
    files, parts = benchmark_files(options.add), dict(part.partition("=")[::2] for part in options.part)
    versions, on = screened_versions(options.root, versions_of(options)), _on(options)
    for version, datasets in versions:
        scan, more = search(options.root, version, files, parts, datasets, on)
        scans.append(scan)
        hits += more
    _print_hits(options, [], scans, hits)
    return 0


def _answer_listed(options: argparse.Namespace) -> int:
    root, files = options.root, benchmark_files(options.file)
    versions, on = screened_versions(root, versions_of(options)), _on(options)
    hits = [
        hit
        for version, datasets in versions
        for hit in listed_hits(root, version, options.benchmark, files, datasets, on)
    ]
    _print_hits(options, [(version.snapshot, screened_for(root, version)) for version, _ in versions], [], hits)
    return 0


def _on(options: argparse.Namespace) -> On:
    return on_of(VERB, recipe_of(options), options, WORKERS)


def _print_hits(
    options: argparse.Namespace, screened: Sequence[tuple[str, tuple[str, ...]]], scans: Sequence[Scan], hits: list[Hit]
) -> None:
    benchmarks = list(screened_lines(screened, "" if scans else options.benchmark))  # refuses an unknown benchmark
    facts = {
        "looked_for": dict(screened),
        "scans": [asdict(scan) for scan in scans],
        "hits": [asdict(hit) for hit in hits],
    }
    looked(options, len(hits), [hit.id for hit in hits])
    print_result(options, facts, [*benchmarks, *map(scan_line, scans), *hit_lines(hits, options.limit)])


def listed_hits(
    root: str,
    version: version_log.Version,
    benchmark: str = "",
    files: Files | None = None,
    datasets: Sequence[version_log.Version] = (),
    on: On = HERE,
) -> Iterator[Hit]:
    """Yield the hits that a version's stage rejected or cut, of one benchmark if named.

    `datasets` are the training datasets in whose tokens a document may be (`screened_versions`). The benchmark's texts
    are read from `files` and from the files of the recipe that have the digest in the manifest. `on` reads the shards.
    """
    manifest = _manifest(root, version)
    known = _used(manifest, {**_of_recipe(version.recipe), **_local(files or {})})
    texts = _references(replace(_params(manifest), benchmarks=known))
    work = _work(root, on, [benchmark])
    list_shard, shards = partial(_listed, work.place, benchmark), _screened(root, manifest)
    listed = work.each("listed", list_shard, shards, key=list, weight=_bytes)
    found = [facts for each in listed for facts in each["hits"]]
    work.forget()
    tokens = _published(root, version, datasets) if any(facts["outcome"] == CUT for facts in found) else frozenset()
    for facts in found:
        yield _hit(version, facts, texts, published=facts["outcome"] == CUT and facts["id"] in tokens)


def screened_for(root: str, version: version_log.Version) -> tuple[str, ...]:
    """Return the benchmarks that a version's stage was given, sorted."""
    return tuple(sorted(_manifest(root, version).params.get("benchmarks", {})))


def _manifest(root: str, version: version_log.Version) -> Manifest:
    path = version.manifests.get(STAGE.name)
    if path is None:
        message = (
            f"{root}: version {version.number} of recipe {version.recipe} has no {STAGE.name}; nothing was screened"
        )
        raise RecipeError(message)
    return read_manifest(root, path)


def _params(manifest: Manifest) -> Params:
    params: Params = bind(
        STAGE, {**manifest.params, "benchmarks": {}}, f"{manifest.stage}/{manifest.fingerprint}: params"
    )
    return params


def _of_recipe(name: str) -> Files:
    """Return the benchmarks that the recipe names now; none if the recipe no longer exists."""
    try:
        return dict(load_recipe(name).step(STAGE.name).params.get("benchmarks", {}))
    except RecipeError:
        return {}


def _used(manifest: Manifest, files: Files) -> dict[str, FilePath]:
    """Return those files whose digest is that of the benchmark of their name in the manifest."""
    used = {}
    for name, digest in manifest.params.get("benchmarks", {}).items():
        try:
            if name in files and digest == f"sha256:{storage.digest_of_file(files[name])[1]}":
                used[name] = FilePath(files[name])
        except FileNotFoundError:
            continue
    return used


Place = tuple[str, int]
"""File and offset of a document."""

Texts = Mapping[tuple[str, int, str, str], Sequence[str]]


def _references(params: Params) -> Texts:
    texts: dict[tuple[str, int, str, str], list[str]] = defaultdict(list)
    for text in read_texts(params):
        texts[text.benchmark, text.item, text.part, text.field].append(text.text)
    return texts


Suspects = tuple[str, Shard, Shard | None]
"""Documents with hits: the outcome, the shard of those, and that of their texts before a cut, None if it is gone."""


def _work(root: str, on: On, asked: Sequence[object]) -> Work:
    place = storage.absolute(root)
    return Work(VERB, place, f"requests/{VERB}-{digest_of([release(), newest(place), *asked])}", on)


def _bytes(shards: Sequence[str | Shard | None]) -> int:
    return sum(each.bytes for each in shards if isinstance(each, Shard))


def _screened(root: str, manifest: Manifest) -> list[Suspects]:
    """Return the shards of the documents that a stage rejected, and of those that it cut."""
    rejected: list[Suspects] = [(REJECTED, shard, None) for shard in manifest.rejects]
    if not manifest.metrics["kept"].get("contaminated_by", {"count": 0})["count"]:
        return rejected
    parent = parent_of(root, manifest)
    before = parent.shards if parent else [None] * len(manifest.shards)
    return rejected + [(CUT, *pair) for pair in zip(manifest.shards, before, strict=True)]


def _listed(root: str, benchmark: str, screened: Suspects) -> dict[str, Any]:
    """Return the hits of the documents of a shard, of one benchmark if named."""
    outcome, shard, before = screened
    rows = _rows(root, shard, (*WHO, "text", "evidence")) if outcome == REJECTED else _cut(root, shard, before)
    hits = [facts for row in rows for facts in _facts(row, row["evidence"], outcome)]
    return {"hits": [facts for facts in hits if benchmark in ("", facts["benchmark"])]}


def _cut(root: str, shard: Shard, before: Shard | None) -> Iterator[dict[str, Any]]:
    """Yield the documents that were cut, with their texts before the cut ("" when those are removed)."""
    rows = {_place(row): row for row in _rows(root, shard, (*WHO, "cut_evidence")) if row["cut_evidence"]}
    texts = _texts_at(root, before, rows) if before and rows else {}
    for place, row in rows.items():
        yield {**row, "evidence": row["cut_evidence"], "text": texts.get(place, "")}


def _texts_at(root: str, shard: Shard, places: Container[Place]) -> dict[Place, str]:
    rows = _rows(root, shard, ("file", "offset", "text"))
    return {_place(row): row["text"] for row in rows if _place(row) in places}


def _place(row: Mapping[str, Any]) -> Place:
    return row["file"], row["offset"]


def _rows(root: str, shard: Shard, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    for batch in read_shards(root, (shard,), columns):
        yield from batch.to_pylist()


def _facts(row: Mapping[str, Any], found: str, outcome: str) -> Iterator[dict[str, Any]]:
    """Yield the hits that the evidence of a document lists, each with the text around the first of its spans."""
    for hit in orjson.loads(found)["hits"]:
        start, end = hit["spans"][0]
        text = row["text"]
        yield {
            "outcome": outcome,
            **{name: row[name] for name in WHO},
            **{name: hit[name] for name in ("benchmark", "item", "part", "field", "method", "score", "spans")},
            "found": (text[max(0, start - AROUND) : start], text[start:end], text[end : end + AROUND]),
        }


def _hit(version: version_log.Version, facts: Mapping[str, Any], texts: Texts, *, published: bool) -> Hit:
    reference = texts.get((facts["benchmark"], facts["item"], facts["part"], facts["field"]), ())
    return Hit(
        recipe=version.recipe,
        snapshot=version.snapshot,
        published=published,
        reference=" | ".join(reference),
        **{**facts, "found": tuple(facts["found"])},
    )


# --- Hits of a new benchmark ------------------------------------------------------------------------------------


def search(
    root: str,
    version: version_log.Version,
    files: Files,
    parts: Mapping[str, str],
    datasets: Sequence[version_log.Version] = (),
    on: On = HERE,
) -> tuple[Scan, list[Hit]]:
    """Search the documents that a version's stage kept for new benchmarks; only texts of candidates are read.

    Candidates are chosen by sketches. The params are those of the manifest, so the hits are those that the stage would
    have had with these benchmarks. `parts` maps more fields to `question`, `answer` or `passage`. `datasets` and `on`
    are as in `listed_hits`. RecipeError where there are no sketches.
    """
    manifest = _manifest(root, version)
    params = _with_parts(replace(_params(manifest), benchmarks=_local(files)), parts)
    if not params.sketch:
        message = (
            f"{root}: snapshot {version.snapshot} of recipe {version.recipe} was refined with `sketch: false`; "
            "name the benchmark in the recipe and refine it again"
        )
        raise RecipeError(message)
    reference, bounds, texts = read_reference(params), bounds_of(params), _references(params)
    work = _work(root, on, [replace(params, benchmarks={}), [*read_texts(params)]])
    search_shard = partial(_searched, work.place, reference, bounds)
    results = [*work.each("searched", search_shard, _sketched(root, manifest), key=list, weight=_bytes)]
    work.forget()
    found = [facts for each in results for facts in each["hits"]]
    tokens = _published(root, version, datasets) if found else frozenset()
    hits = [_hit(version, facts, texts, published=facts["id"] in tokens) for facts in found]
    candidates = sum(each["candidates"] for each in results)
    size = sum(shard.bytes for shard in manifest.history_shards)
    return Scan(version.recipe, version.snapshot, manifest.rows, size, candidates, len(hits)), hits


def _searched(root: str, reference: "Reference", bounds: "Bounds", shards: tuple[Shard, Shard]) -> dict[str, Any]:
    """Return how many documents of a shard are candidates by their sketches, and the hits of these."""
    from pipeline_tasks.text.near.sketches import sift

    sketches, shard = shards
    rows = [sift(batch.column("sketch"), reference.sieve) for batch in read_shards(root, (sketches,))]
    chosen = np.flatnonzero(np.concatenate(rows))
    confirmed = _confirmed(_read_rows(root, shard, chosen), reference, bounds)
    hits = [facts for row, found in confirmed for facts in _facts(row, found, KEPT)]
    return {"candidates": len(chosen), "hits": hits}


def _local(files: Files) -> dict[str, FilePath]:
    """Return paths of local files, copies of those on S3; RecipeError for a file that does not exist."""
    local = {}
    for name, path in files.items():
        uri = path if "://" in path else str(Path(path).absolute())
        try:
            local[name] = FilePath(storage.localize(uri, storage.digest_of_file(uri)[1]))
        except OSError as error:
            if isinstance(error, RefineryError):  # the store was busy
                raise
            message = f"benchmark {name}: {path} is no file; give one with an item of the benchmark per line, as JSON"
            raise RecipeError(message) from error
    return local


def _with_parts(params: Params, parts: Mapping[str, str]) -> Params:
    more: dict[str, list[str]] = {"question": [], "answer": [], "passage": []}
    for name, part in parts.items():
        if part not in more:
            message = f"--part {name}={part}: a field is a question, an answer or a passage"
            raise RecipeError(message)
        more[part].append(name)
    return replace(
        params,
        questions=(*params.questions, *more["question"]),
        answers=(*params.answers, *more["answer"]),
        passages=(*params.passages, *more["passage"]),
    )


def _sketched(root: str, manifest: Manifest) -> list[tuple[Shard, Shard]]:
    """Return each shard of sketches with the shard whose documents it sketches, row by row."""
    sketches = manifest.history.get("sketches", ())
    if [shard.rows for shard in sketches] != [shard.rows for shard in manifest.shards]:
        message = (
            f"{root}: {manifest.stage}/{manifest.fingerprint} has sketches that do not fit its shards; refine it again"
        )
        raise ContractError(message)
    return list(zip(sketches, manifest.shards, strict=True))


def _read_rows(root: str, shard: Shard, rows: "np.ndarray[Any, Any]") -> pa.Table | None:
    """Return the documents of a shard in these rows, which ascend; nothing is read for none."""
    if not len(rows):
        return None
    start, batches = 0, []
    for batch in read_shards(root, (shard,), (*WHO, "text")):
        here = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + batch.num_rows)]
        batches.append(batch.take(pa.array(here - start)))
        start += batch.num_rows
    return pa.Table.from_batches(batches)


def _confirmed(
    table: pa.Table | None,
    reference: "Reference",
    bounds: "Bounds",
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the documents that match, each with the evidence of that."""
    from pipeline_tasks.text.near.matches import find

    if table is None:
        return
    texts = table.column("text").combine_chunks()
    for row, matches in find(texts, reference, bounds).items():
        document = table.slice(row, 1).to_pylist()[0]
        yield document, evidence(document["text"], matches)


def screened_versions(root: str, versions: Iterable[version_log.Version]) -> list[Screened]:
    """Return versions of snapshots with the training datasets that have them; a dataset stands for its snapshots."""
    built = version_log.built_versions(root)
    pairs: list[Screened] = []
    for version in versions:
        if COMPOSE in version.manifests:
            pairs += [(source, (version,)) for source in _sources(root, version)]
        else:
            own = (version.snapshot, path_of(version.refined))
            having = (dataset for dataset in built if own in {(row[1], row[2]) for row in _selected(root, dataset)})
            pairs.append((version, tuple(having)))
    return pairs


def _selected(root: str, dataset: version_log.Version) -> list[tuple[str, str, str]]:
    """Return the recipe, the snapshot and the manifest of each version that a dataset was composed of."""
    composed = read_manifest(root, dataset.manifests[COMPOSE]).params["versions"]
    return [(row["recipe"], row["snapshot"], row["manifest"]) for row in composed]


def _sources(root: str, dataset: version_log.Version) -> Iterator[version_log.Version]:
    """Yield the versions of snapshots that a dataset was composed of; ContractError for one that is not in the log."""
    for recipe, snapshot, manifest in _selected(root, dataset):
        published = [
            version
            for version in version_log.versions(root, recipe)
            if version.snapshot == snapshot and path_of(version.refined) == manifest
        ]
        if not published:
            message = (
                f"{root}: version {dataset.number} of {dataset.recipe} was built of {manifest}, which no version of "
                f"snapshot {snapshot} of recipe {recipe} has; restore its log from a backup"
            )
            raise ContractError(message)
        yield published[-1]


def _published(root: str, version: version_log.Version, datasets: Sequence[version_log.Version]) -> frozenset[str]:
    """Return the ids of a snapshot's documents in the tokens of datasets; every lineage is read by its digest.

    Versions of earlier releases have tokens of their own, with one lineage.
    """
    own = [(version, file) for file in version.files if file.path == f"{version.prefix}/lineage.parquet"]
    shards = [
        (dataset, file_of(entry["lineage"]))
        for dataset in datasets
        for entry in open_build(root, dataset).index["shards"]
    ]
    ids: set[str] = set()
    for named_by, file in (*own, *shards):
        body = read_published_file(root, file, named_by.way_out)
        pieces = pq.read_table(pa.BufferReader(body), columns=["id", *([] if own else ["snapshot"])])
        mine = pieces if own else pieces.filter(pc.equal(pieces["snapshot"], version.snapshot))
        ids.update(mine.column("id").to_pylist())
    return frozenset(ids)


def benchmark_files(written: Sequence[str]) -> dict[str, str]:
    """Return {benchmark: file} of `NAME=FILE` or `FILE`; a file without a name is called by its stem."""
    files = {}
    for option in written:
        name, _, path = option.rpartition("=")
        name = name or PurePosixPath(path).name.partition(".")[0]
        if name in files:
            message = f"{option}: there is another benchmark {name}; name it with NAME=FILE"
            raise RecipeError(message)
        files[name] = path
    return files


# --- Lines -----------------------------------------------------------------------------------------------


def screened_lines(screened: Sequence[tuple[str, tuple[str, ...]]], benchmark: str = "") -> Iterator[str]:
    """Yield the benchmarks of each run of snapshots; RecipeError if `benchmark` is named and is not among them.

    `screened` lists (snapshot, benchmarks) in the order of snapshots.
    """
    known = sorted({name for _, names in screened for name in names})
    if benchmark and benchmark not in known:
        given = ", ".join(known) or "no evaluation set"
        message = f"these snapshots were screened for {given}, not for {benchmark!r}; --add looks for a new one"
        raise RecipeError(message)
    for names, group in groupby(screened, key=itemgetter(1)):
        days = [snapshot for snapshot, _ in group]
        where = days[0] if len(days) == 1 else f"{len(days):,} snapshots, {days[0]} to {days[-1]}"
        yield f"looked for {', '.join(names) or 'no evaluation set'} in {where}"


def scan_line(scan: Scan) -> str:
    """Return the counts of a search as one line."""
    each = scan.sketch_bytes / scan.documents if scan.documents else 0.0
    return (
        f"{scan.recipe} {scan.snapshot}: {counted(scan.documents, 'document')} by their sketches "
        f"({scan.sketch_bytes:,} bytes, {each:,.1f} per document); "
        f"{scan.candidates:,} read, {counted(scan.hits, 'hit')}"
    )


def hit_lines(hits: Sequence[Hit], limit: int) -> Iterator[str]:
    """Yield counts per benchmark, then hits with the text around them next to the text of the benchmark."""
    documents: dict[tuple[str, str, str, str], set[tuple[str, int]]] = defaultdict(set)
    for hit in hits:
        documents[hit.recipe, hit.snapshot, hit.benchmark, hit.outcome].add((hit.file, hit.offset))
    for (recipe, snapshot, benchmark, outcome), rows in sorted(documents.items()):
        yield f"{recipe} {snapshot}: {counted(len(rows), 'document')} with {benchmark} {outcome}"
    if not hits:
        yield "no hits"
    items = [list(group) for _, group in groupby(hits, key=_item)]
    for group in items[:limit]:
        yield ""
        yield from _item_lines(group)
    if len(items) > limit:
        yield f"\n{len(items) - limit:,} more; see them with --limit {len(items)}"


def _item(hit: Hit) -> tuple[object, ...]:
    return (hit.snapshot, hit.file, hit.offset, hit.benchmark, hit.item, hit.part, hit.field)


def _item_lines(hits: Sequence[Hit]) -> Iterator[str]:
    """Yield the hits of one benchmark text in one document: each method and score, and the place of the first hit."""
    hit = hits[0]
    scores = "; ".join(f"{hit.method}, score {hit.score:.3f}" for hit in hits)
    where = ", in the tokens" if hit.published else ""
    places = f"{len(hit.spans)} places" if len(hit.spans) > 1 else f"characters {hit.spans[0][0]}-{hit.spans[0][1]}"
    yield f"{hit.benchmark} item {hit.item}, {hit.part} ({hit.field}): {scores}"
    yield f"{hit.outcome}{where}: {_plain(hit.url) or _plain(hit.file)} (document {hit.id}), {places}"
    before, match, after = map(_plain, hit.found)
    shown = f"...{before} [[{match}]] {after}..." if match else "(its text before the cut is gone)"
    left = textwrap.wrap(shown, WIDTH, max_lines=LINES, placeholder=" ...")
    reference = _plain(hit.reference) or "(the file that was used is not known: --file NAME=FILE)"
    right = textwrap.wrap(reference, WIDTH, max_lines=LINES)
    for left_line, right_line in zip_longest(left, right, fillvalue=""):
        yield f"  {left_line:<{WIDTH}} | {right_line}".rstrip()


def _plain(text: str | None) -> str:
    """Return text on one line without control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text or "").split())
