"""Writes a snapshot's report, one HTML file: the funnel, reasons, gates, distributions, evidence and samples."""

import hashlib
import json
import posixpath
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from pipeline_tasks.gate.facts import sampled
from pipeline_tasks.gate.verdicts import Verdict, read_verdict
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.columns import quantile
from pipeline_tasks.publish.html import Child, Html, bar, count, join, page, percent, shown, size, table, tag
from pipeline_tasks.publish.version_log import Retraction
from pipeline_tasks.recipe import STAGES, stage_card
from pipeline_tasks.stage import Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_history, read_manifest, read_shards

READ = 64 * 1024 * 1024
"""Whole shards of at most this many bytes per stage are read for samples."""

SAMPLES = 8
LISTED = 50

CLEAN = ("decontaminate", "scrub_pii")
"""Stages whose kept texts may be shown, the last one first: personal data has been taken out by then."""

NAMES_SHOWN = 12
GATE_HEAD = ("stage", "outcome", "fact", "observed", "bound", "why")
REASON_HEAD = ("stage", "reason", "rows", "", "share")


@dataclass(frozen=True, slots=True)
class Told:
    """All that a report is written from."""

    root: str
    recipe: str
    snapshot: str
    made: Mapping[str, Manifest]
    paths: Mapping[str, str]
    verdicts: Mapping[str, Verdict]
    out: str
    costs: Sequence[Mapping[str, Any]]
    gone: Sequence[Retraction]


def write_report(  # noqa: PLR0913 -- what a report tells, part by part
    root: str,
    recipe: str,
    snapshot: str,
    manifests: Mapping[str, str],
    verdicts: Mapping[str, str],
    out_path: str,
    costs: Sequence[Mapping[str, Any]] = (),
    *,
    gone: Sequence[Retraction] = (),
) -> str:
    """Write the report of a snapshot's manifests (stage -> path) and verdicts to `out_path`; return that path.

    Paths are relative to `root`. `costs` are rows of the ledger's question `cost`; `gone` are the earlier snapshots
    that are retracted. Texts are shown only as they were after personal data was removed; of rows that were set aside
    only address, reason and evidence.
    """
    stages = [stage for stage in STAGES if stage in manifests]
    told = Told(
        root=root,
        recipe=recipe,
        snapshot=snapshot,
        made={stage: read_manifest(root, manifests[stage]) for stage in stages},
        paths=manifests,
        verdicts={stage: read_verdict(root, path) for stage, path in verdicts.items()},
        out=out_path,
        costs=costs,
        gone=gone,
    )
    sections = [section for write in SECTIONS for section in write(told)]
    _store(root, out_path, page(f"{recipe} {snapshot}", *sections))
    return out_path


def _store(root: str, path: str, body: bytes) -> None:
    with tempfile.NamedTemporaryFile(prefix="refinery-report-") as local:
        local.write(body)
        local.flush()
        storage.connect(root).put_file(path, Path(local.name), hashlib.sha256(body).hexdigest())


def _section(title: str, lead: str, *content: Child) -> Iterator[Html]:
    yield tag("section", tag("h2", title), tag("p", lead, css="lead"), *content)


def _measure(made: Manifest, name: str, of: str = "kept") -> Mapping[str, Any]:
    found: Mapping[str, Any] = made.metrics.get(of, {}).get(name, {"kind": "name", "count": 0, "sum": 0, "bins": {}})
    return found


def _last(told: Told, name: str) -> Manifest | None:
    """Return the last manifest that measured a column."""
    found = [one for one in told.made.values() if _measure(one, name)["count"]]
    return found[-1] if found else None


# --- Numbers --------------------------------------------------------------------------------------------------


def _opening(told: Told) -> Iterator[Html]:
    made = list(told.made.values())
    yield tag("header", tag("h1", f"{told.recipe} · {told.snapshot}"), tag("p", _summary(told), css="dim"))
    for one in told.gone:
        yield tag("p", f"Earlier snapshot {shown(one.snapshot, 60)} was {shown(one.account, 400)}.")
    tiles: list[tuple[str, str]] = []
    if made:
        tiles.append((count(made[0].rows_in), "records in the crawl"))
    documents = [one for one in made if one.stage != "pack"]
    if documents:
        tiles.append((count(documents[-1].rows), "documents kept"))
    tokens = _last(told, "n_tokens")
    if tokens:
        tiles.append((count(_measure(tokens, "n_tokens")["sum"]), "tokens"))
    if "pack" in told.made:
        tiles.append((count(told.made["pack"].rows), "packed sequences"))
    if told.verdicts:
        tiles.append((_worst(told), f"{len(told.verdicts)} gates"))
    if told.costs:
        cost = sum(row["cost_usd"] for row in told.costs)
        tiles.append((f"${cost:,.2f}" if cost >= 1 else f"${cost:.4f}", "at the ledger's prices"))
    yield tag(
        "div", *(tag("div", tag("b", value), tag("span", name), css="tile") for value, name in tiles), css="tiles"
    )


def _summary(told: Told) -> str:
    made = list(told.made.values())
    quarantined = sum(sum(one.quarantined.values()) for one in made)
    return (
        f"{len(made)} stages, {size(made[0].bytes_in if made else 0)} of crawl read. "
        f"Every record is accounted for: kept, set aside with a reason, or damaged ({count(quarantined)})."
    )


def _worst(told: Told) -> str:
    outcomes = {one.outcome for one in told.verdicts.values()}
    return "refused" if "refuse" in outcomes else "warned" if "warn" in outcomes else "passed"


def _funnel(told: Told) -> Iterator[Html]:
    most = max((one.rows_in for one in told.made.values()), default=0)
    rows = [_funnel_row(told, made, most) for made in told.made.values()]
    head = ("stage", "in", "kept", "", "share", "stored", "gate")
    lead = "What came into each stage and what stayed. The bars share one scale."
    yield from _section("Funnel", lead, table(head, rows, numeric=(1, 2, 4, 5), wide=3))


def _funnel_row(told: Told, made: Manifest, most: int) -> Sequence[Child]:
    name = join((made.stage, tag("div", stage_card(made.stage).title, css="dim title")))
    sequences = made.stage == "pack"
    kept = f"{count(made.rows)} seq." if sequences else count(made.rows)
    share = "" if sequences else percent(made.rows, made.rows_in)
    bars = Html("") if sequences else bar(made.rows, most)
    return (name, count(made.rows_in), kept, bars, share, size(made.bytes), _gate(told, made.stage))


def _gate(told: Told, stage: str) -> Html:
    verdict = told.verdicts.get(stage)
    if verdict is None:
        return tag("span", "-", css="dim")
    href = posixpath.relpath(verdict.docs, posixpath.dirname(told.out) or ".")
    return tag("a", tag("span", verdict.outcome, css=verdict.outcome), href=href)


def _reasons(told: Told) -> Iterator[Html]:
    rows = [row for made in told.made.values() for row in _reason_rows(made)]
    if rows:
        lead = "Per stage, the first rule that a row failed, and its share of what came into the stage."
        yield from _section("Why rows were set aside", lead, table(REASON_HEAD, rows, numeric=(2, 4), wide=3))


def _reason_rows(made: Manifest) -> Iterator[Sequence[Child]]:
    ranked = _top({**made.rejected, **made.quarantined})
    for rank, (why, lost) in enumerate(ranked):
        stage = tag("span", "" if rank else made.stage, css="word")
        bars = bar(lost, ranked[0][1], "bare")
        yield (stage, tag("code", why), count(lost), bars, percent(lost, made.rows_in))


def _top(tally: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the most frequent names with their counts, and all the others in one line."""
    ranked = sorted(tally.items(), key=lambda pair: (-pair[1], pair[0]))
    if len(ranked) <= NAMES_SHOWN + 1:
        return ranked
    rest = ranked[NAMES_SHOWN:]
    return [*ranked[:NAMES_SHOWN], (f"{len(rest)} others", sum(value for _, value in rest))]


def _distributions(told: Told) -> Iterator[Html]:
    cards: list[Html] = []
    languages, chars, score = (_last(told, name) for name in ("language", "chars", "score"))
    if languages:
        cards.append(_bars(f"Languages after {languages.stage}", _top(_measure(languages, "language")["bins"])))
    if chars:
        column = _measure(chars, "chars")
        middle = f"half have {count(quantile(column, 0.5))} characters or more"
        cards.append(_bars(f"Length after {chars.stage}: {middle}", _octaves(column)))
    if score:
        cards.append(_bars(f"Quality score after {score.stage}", _tenths(_measure(score, "score"))))
    if cards:
        yield from _section("Distributions", "Documents that were kept.", tag("div", *cards, css="pair"))


def _bars(title: str, pairs: Sequence[tuple[str, int]]) -> Html:
    most, total = max(value for _, value in pairs), sum(value for _, value in pairs)
    rows = [
        (tag("span", shown(name, 40), css="word"), count(value), bar(value, most, "blue bare"), percent(value, total))
        for name, value in pairs
    ]
    return tag("div", tag("h3", title), table(("", "documents", "", "share"), rows, numeric=(1, 3), wide=2))


def _octaves(column: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return counts by power of two, none left out between the first and the last."""
    found: Counter[int] = Counter()
    for key, value in column["bins"].items():
        found[max(int(key), 1).bit_length() - 1] += value
    return [
        (f"{count(2**rank)}-{count(2 ** (rank + 1) - 1)}", found[rank]) for rank in range(min(found), max(found) + 1)
    ]


def _tenths(column: Mapping[str, Any]) -> list[tuple[str, int]]:
    found: Counter[int] = Counter()
    for key, value in column["bins"].items():
        found[min(int(key) // 10, 9)] += value
    return [(f"{rank / 10:.1f}-{(rank + 1) / 10:.1f}", found[rank]) for rank in range(min(found), max(found) + 1)]


def _gates(told: Told) -> Iterator[Html]:
    if not told.verdicts:
        return
    rows = [row for stage in told.made for row in _verdict_rows(told, stage)]
    passed = sum(one.outcome == "pass" for one in told.verdicts.values())
    held = sum(one.evaluated - len(one.failures) for one in told.verdicts.values())
    lead = (
        f"{passed} of {len(told.verdicts)} gates passed without remark; {held} expectations held. "
        "The outcomes in the funnel link to their Data Docs."
    )
    yield from _section("Gates", lead, *([table(GATE_HEAD, rows, numeric=(3, 4))] if rows else []))


def _verdict_rows(told: Told, stage: str) -> Iterator[Sequence[Child]]:
    verdict = told.verdicts.get(stage)
    if verdict is None:
        return
    if verdict.override:
        yield (stage, _gate(told, stage), "", "", "", f"A person let it pass: {shown(verdict.override)}")
    for one in verdict.failures:
        low, high = one.bound.get("min_value"), one.bound.get("max_value")
        bound = " and ".join(part for part in (_bound("≥", low), _bound("≤", high)) if part)
        observed = "-" if one.observed is None else f"{one.observed:,.4g}"
        yield (stage, _gate(told, stage), tag("span", tag("code", one.column), css="word"), observed, bound, one.why)


def _bound(sign: str, value: float | None) -> str:
    return "" if value is None else f"{sign} {value:,.4g}"


def _personal(told: Told) -> Iterator[Html]:
    made = told.made.get("scrub_pii")
    if made is None:
        return
    rows = []
    for name in (one for one in stage_card("scrub_pii").profiled if _measure(made, one)["count"]):
        column = _measure(made, name)
        touched = column["count"] - column["bins"].get("0", 0)
        per = f"{1000 * column['sum'] / column['count']:,.1f}"
        rows.append((name.removeprefix("pii_"), count(column["sum"]), count(touched), per))
    if rows:
        head = ("kind", "found", "documents with any", "per 1,000 documents")
        lead = "Counts only: what was found stands in no evidence."
        yield from _section("Personal data", lead, table(head, rows, numeric=(1, 2, 3)))


def _benchmarks(told: Told) -> Iterator[Html]:
    made = told.made.get("decontaminate")
    if made is None:
        return
    aside, cut = (_by_benchmark(_measure(made, "contaminated_by", of)["bins"]) for of in ("rejects", "kept"))
    names = sorted({*aside, *cut, *made.params.get("benchmarks", {})})
    rows = [(shown(name, 60), count(aside[name]), count(cut[name])) for name in names]
    lead = "No evaluation set was looked for."
    if rows:
        found = "by benchmark" if aside or cut else "none was found"
        lead = f"Documents that hold questions, answers or passages of evaluation sets: {found}."
    tables = [table(("benchmark", "documents set aside", "documents cut"), rows, numeric=(1, 2))] if rows else []
    yield from _section("Evaluation sets", lead, *tables, *_items(told, made))


def _by_benchmark(bins: Mapping[str, int]) -> Counter[str]:
    """Return documents per benchmark; one that holds items of several counts for each."""
    found: Counter[str] = Counter()
    for names, documents in bins.items():
        for name in names.split("+"):
            found[name] += documents
    return found


def _items(told: Told, made: Manifest) -> Iterator[Html]:
    """Yield a table of items found in documents that were set aside: where, never the words."""
    found = _rows(told, made.rejects, ("url", "evidence"), SAMPLES) if made.rejects else []
    hits = [(row, hit) for row in found for hit in json.loads(row["evidence"] or "{}").get("hits", [])]
    rows = [(_address(row), *_item(hit)) for row, hit in hits[:LISTED]]
    if rows:
        head = ("set aside", "item", "part", "found by", "score", "characters")
        yield table(head, rows, numeric=(4, 5))


def _item(hit: Mapping[str, Any]) -> Sequence[Child]:
    item = f"{shown(hit['benchmark'], 40)} {hit['item']}"
    start, end = hit["spans"][0]
    more = f" and {len(hit['spans']) - 1} more" if len(hit["spans"]) > 1 else ""
    part = f"{hit['part']} ({shown(hit['field'], 40)})"
    return (item, part, hit["method"], f"{hit['score']:.3f}", f"{start:,}-{end:,}{more}")


def _tokens(told: Told) -> Iterator[Html]:
    rows = []
    for made in told.made.values():
        column = _measure(made, "n_tokens")
        if column["count"]:
            unit = "sequences" if made.stage == "pack" else "documents"
            each = f"{column['sum'] / column['count']:,.1f}"
            rows.append((made.stage, count(column["sum"]), f"{count(made.rows)} {unit}", each, size(made.bytes)))
    if rows:
        head = ("after", "tokens", "in", "tokens each", "stored")
        yield from _section("Tokens", "Tokens are conserved from mix to pack.", table(head, rows, numeric=(1, 2, 3, 4)))


def _cost(told: Told) -> Iterator[Html]:
    if not told.costs:
        return
    rows = [
        (
            row["stage"],
            row["engine"],
            f"{row['wall_seconds']:,.1f} s",
            f"{row['cpu_hours'] * 3600:,.1f} s",
            f"{row['gpu_hours'] * 3600:,.1f} s",
            f"${row['cost_usd']:,.4f}",
        )
        for row in told.costs
    ]
    head = ("stage", "engine", "wall clock", "CPU", "GPU", "cost")
    yield from _section("Cost", "As the ledger recorded it.", table(head, rows, numeric=(2, 3, 4, 5)))


# --- Records --------------------------------------------------------------------------------------------------


def _rows(told: Told, shards: Shards, columns: Sequence[str], most: int) -> list[dict[str, Any]]:
    """Return rows chosen by a hash of their record, from whole shards chosen by their digest: no favorites."""
    chosen: list[dict[str, Any]] = []
    for batch in read_shards(told.root, tuple(sampled(shards, READ)), ("file", "offset", "record_id", *columns)):
        chosen = sorted([*chosen, *batch.to_pylist()], key=_draw)[:most]
    return chosen


def _draw(row: Mapping[str, Any]) -> tuple[int, str, int]:
    where = f"{row['file']}\0{row['offset']}".encode()
    return xxhash.xxh64_intdigest(where), str(row["file"]), int(row["offset"] or 0)


def _address(row: Mapping[str, Any]) -> Html:
    """Return where a record came from: its address without query (which may hold names), else its file and offset."""
    url = str(row.get("url") or "").partition("?")[0].partition("#")[0]
    return tag("span", shown(url, 120) or f"{shown(str(row['file']), 80)} @ {row['offset']}", css="long")


def _quarantine(told: Told) -> Iterator[Html]:
    lines: list[Sequence[Child]] = []
    total = 0
    for made in told.made.values():
        total += sum(made.quarantined.values())
        if made.quarantine and len(lines) < LISTED:
            found = _rows(told, made.quarantine, ("reason", "evidence"), LISTED - len(lines))
            lines += [(made.stage, tag("code", row["reason"]), _place(row), _proof(row)) for row in found]
    if lines:
        lead = f"{count(total)} damaged records" + (
            f", {len(lines)} of them chosen by hash." if total > len(lines) else "."
        )
        yield from _section("Quarantine", lead, table(("stage", "reason", "record", "evidence"), lines))


def _place(row: Mapping[str, Any]) -> Html:
    where = f"{shown(str(row['file']), 80)} @ {row['offset']}"
    return join((where, tag("div", shown(str(row.get("record_id") or ""), 80), css="dim long")))


def _proof(row: Mapping[str, Any]) -> Html:
    """Return a row's evidence, compact: each failed rule with its value and bound."""
    try:
        proof = json.loads(row.get("evidence") or "null")
    except ValueError:
        proof = row["evidence"]
    if isinstance(proof, list) and all(isinstance(one, dict) and "rule" in one for one in proof):
        return tag(
            "code", shown("; ".join(f"{one['rule']} {one.get('value')} / {one.get('bound')}" for one in proof), 240)
        )
    if isinstance(proof, dict):
        told = ", ".join(f"{key} {_flat(value)}" for key, value in proof.items() if value not in (None, ""))
        return tag("code", shown(told, 240))
    return tag("span", "-", css="dim")


def _flat(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _near_copies(told: Told) -> Iterator[Html]:
    made = told.made.get("dedup_minhash")
    if made is None or not made.rejects:
        return
    found = _rows(told, made.rejects, ("url", "id", "evidence"), SAMPLES)
    rows = [_near_copy(row, json.loads(row["evidence"] or "{}")) for row in found]
    lead = (
        "Similarity is exact, of shingles with the nearest document; the cluster keeps one, which a preference decided."
    )
    head = ("set aside", "kept instead", "nearest", "similarity", "equal bands", "decided by")
    yield from _section("Near copies", lead, table(head, rows, numeric=(3, 4)))


def _near_copy(row: Mapping[str, Any], proof: Mapping[str, Any]) -> Sequence[Child]:
    kept = tag("span", tag("code", str(proof.get("winner", ""))[:12]), css="word")
    near = tag("span", tag("code", str(proof.get("near", ""))[:12]), css="word")
    snapshot = tag("div", shown(str(proof.get("snapshot", "")), 30), css="dim word")
    similarity = f"{proof.get('jaccard', proof.get('containment', 0)):.3f}"
    return (_address(row), join((kept, snapshot)), near, similarity, proof.get("bands", 0), proof.get("by", ""))


def _superseded(told: Told) -> Iterator[Html]:
    """Show the documents of earlier snapshots that this snapshot supersedes."""
    made = told.made.get("dedup_minhash")
    if made is None or not (superseded := sum(shard.rows for shard in made.history.get("superseded", ()))):
        return
    rows: list[Sequence[Child]] = []
    for batch in read_history(told.root, made, "superseded", ("node", "winner", "similarity")):
        for row in batch.slice(0, SAMPLES - len(rows)).to_pylist():
            nodes = [
                join((tag("code", node["id"][:12]), tag("div", shown(node["snapshot"], 30), css="dim word")))
                for node in (row["node"], row["winner"])
            ]
            rows.append((*nodes, f"{row['similarity']:.3f}"))
    lead = f"{count(superseded)} in all, in superseded.parquet; what was published stays as it is."
    head = ("earlier document", "superseded by", "similarity")
    yield from _section("Superseded", lead, table(head, rows, numeric=(2,)))


def _kept_samples(told: Told) -> Iterator[Html]:
    stage = next((one for one in CLEAN if one in told.made), None)
    if stage is None or not told.made[stage].rows:
        return
    found = _rows(told, told.made[stage].shards, ("url", "title", "text", "language"), SAMPLES)
    rows = [
        (
            join((_address(row), tag("div", row.get("language") or "", css="dim"))),
            tag("blockquote", shown(row["text"] or "", 420), dir="auto"),
        )
        for row in found
    ]
    lead = f"Chosen by a hash of their record, as they were after {stage}, cut to a few lines."
    yield from _section("Kept documents", lead, table(("from", "text"), rows))


def _set_aside_samples(told: Told) -> Iterator[Html]:
    rows: list[Sequence[Child]] = []
    for made in told.made.values():
        found = _rows(told, made.rejects, ("url", "reason", "evidence"), 3) if made.rejects else []
        rows += [(made.stage, _address(row), tag("code", row["reason"]), _proof(row)) for row in found]
    if rows:
        lead = "Chosen by a hash of their record: address, reason and evidence, never the text."
        yield from _section("Set aside", lead, table(("stage", "from", "reason", "evidence"), rows))


def _closing(told: Told) -> Iterator[Html]:
    rows = [(stage, tag("code", told.paths[stage])) for stage in told.made]
    lead = "Each stage's output is named by what it was made of; the paths are relative to the root."
    yield from _section("Manifests", lead, table(("stage", "manifest"), rows))


SECTIONS = (
    _opening,
    _funnel,
    _gates,
    _reasons,
    _distributions,
    _tokens,
    _near_copies,
    _superseded,
    _personal,
    _benchmarks,
    _cost,
    _quarantine,
    _kept_samples,
    _set_aside_samples,
    _closing,
)
"""The report's sections in reading order; each yields nothing where there is nothing to tell."""
