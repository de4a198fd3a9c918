"""Renders the report's sections that show records: duplicates, hits of evaluation sets, and samples of rows."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import dropwhile
from typing import Any

import pyarrow as pa

from pipeline_tasks.cards import adds, copies_of, of_stage, refines
from pipeline_tasks.counted import counted
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.superseded import SUPERSEDED, near_manifests, superseded_by
from pipeline_tasks.report.contents import Contents, profile_of
from pipeline_tasks.report.html import Child, Html, count, join, section, shown, table, tag
from pipeline_tasks.report.survivors import survivors, tallies
from pipeline_tasks.store.reading import clears_personal_data
from pipeline_tasks.text.base.tables import in_order
from pipeline_tasks.text.pii.web_addresses import scrub_url

SAMPLES = 8
"""Rows that a section shows."""

REJECTS_SHOWN = 3
"""Rejected rows that are shown per stage."""

LISTED = 50
"""Quarantined records, or hits of evaluation sets, that a section lists."""

AUDITED = 200
"""Pairs of near duplicates that are compared."""

SIMILARITIES = ("jaccard", "containment", "cosine")


def near_duplicates(contents: Contents) -> Iterator[Html]:
    """Show rejected near duplicates, each with the document that is kept instead."""
    for manifest in near_manifests(contents.manifests):
        if not manifest.rejects:
            continue
        sample = contents.sample(manifest.rejects, ("url", "id", "evidence"), SAMPLES)
        rows = [_near_duplicate(row, json.loads(row["evidence"] or "{}")) for row in sample]
        lead = "The similarity to the nearest document is exact. A cluster keeps its first document by the policy."
        head = ("rejected", "kept instead", "nearest", "similarity", "equal bands", "decided by")
        yield section(copies_of(manifest.stage).title, lead, table(head, rows, numeric=(3, 4)))


def _near_duplicate(row: Mapping[str, Any], evidence: Mapping[str, Any]) -> Sequence[Child]:
    kept = _document(str(evidence.get("winner", "")), str(evidence.get("snapshot", "")))
    near = tag("span", tag("code", str(evidence.get("near", ""))[:12]), css="word")
    similarity = f"{next((evidence[name] for name in SIMILARITIES if name in evidence), 0):.3f}"
    return (_address(row), kept, near, similarity, evidence.get("bands", 0), evidence.get("by", ""))


def _document(id_: str, snapshot: str) -> Html:
    """Return a document's shortened id and its snapshot."""
    name = tag("span", tag("code", id_[:12]), css="word")
    return join((name, tag("div", shown(snapshot, 30), css="dim word")))


def audit_of_survivors(contents: Contents) -> Iterator[Html]:
    """Show what removed near duplicates had more of than the documents that are kept in their place."""
    pairs = survivors(contents.root, contents.recipe, near_manifests(contents.manifests), AUDITED)
    if not pairs:
        return
    rows = [
        (of.kind, *map(count, (of.compared, of.loser, of.winner, of.compared - of.loser - of.winner)))
        for of in tallies(pairs)
    ]
    lead = (
        f"{counted(len(pairs), 'near duplicate')} and what is kept in their place, chosen by a hash: which of the two "
        "has more characters, more lines that end as sentences do, the later date and the higher score. "
        "`refinery read --pairs` shows such pairs side by side."
    )
    head = ("kind", "pairs", "the removed one has more", "the kept one has more", "alike")
    yield section("Audit of survivors", lead, table(head, rows, numeric=(1, 2, 3, 4)))


def superseded(contents: Contents) -> Iterator[Html]:
    """Show documents of earlier snapshots that this snapshot supersedes."""
    near = near_manifests(contents.manifests)
    total = sum(shard.rows for manifest in near for shard in manifest.history.get("superseded", ()))
    if not total:
        return
    first = SUPERSEDED.empty_table()
    for batch in superseded_by(contents.root, near):
        first = in_order(pa.concat_tables([first, pa.Table.from_batches([batch])]), "id", "winner").slice(0, SAMPLES)
    rows = [
        (
            _document(row["id"], row["snapshot"]),
            _document(row["winner"], row["winner_snapshot"]),
            f"{row['similarity']:.3f}",
        )
        for row in first.to_pylist()
    ]
    lead = f"{count(total)} in all, listed in superseded.parquet; published files are not changed."
    yield section("Superseded", lead, table(("earlier document", "superseded by", "similarity"), rows, numeric=(2,)))


# --- Evaluation sets ----------------------------------------------------------------------------------------------


def evaluation_sets(contents: Contents) -> Iterator[Html]:
    """Show how many documents had items of each benchmark, and which items."""
    manifest = of_stage(contents.manifests, partial(adds, "contaminated_by"))
    if manifest is None:
        return
    rejected, cut = (_documents_by_benchmark(manifest, rows) for rows in ("rejects", "kept"))
    names = sorted({*rejected, *cut, *manifest.params.get("benchmarks", {})})
    if not names:
        yield section("Evaluation sets", "The recipe names no evaluation sets.")
        return
    total = "by benchmark" if rejected or cut else "none"
    lead = f"Documents with questions, answers or passages of evaluation sets: {total}."
    rows = [(shown(name, 60), count(rejected[name]), count(cut[name])) for name in names]
    head = ("benchmark", "documents rejected", "documents cut")
    yield section("Evaluation sets", lead, table(head, rows, numeric=(1, 2)), *_items(contents, manifest))


def _documents_by_benchmark(manifest: Manifest, rows: str) -> Counter[str]:
    """Return documents per benchmark; a document with items of several benchmarks counts for each."""
    counts: Counter[str] = Counter()
    for names, documents in profile_of(manifest, "contaminated_by", rows)["bins"].items():
        for name in names.split("+"):
            counts[name] += documents
    return counts


def _items(contents: Contents, manifest: Manifest) -> Iterator[Html]:
    """Yield a table of the items in rejected documents: their positions, never the words."""
    sample = contents.sample(manifest.rejects, ("url", "evidence"), SAMPLES) if manifest.rejects else []
    hits = [(row, hit) for row in sample for hit in json.loads(row["evidence"] or "{}").get("hits", [])]
    if hits:
        rows = [(_address(row), *_item(hit)) for row, hit in hits[:LISTED]]
        head = ("rejected", "item", "part", "method", "score", "characters")
        yield table(head, rows, numeric=(4, 5))


def _item(hit: Mapping[str, Any]) -> Sequence[Child]:
    item = f"{shown(hit['benchmark'], 40)} {hit['item']}"
    start, end = hit["spans"][0]
    more = f" and {len(hit['spans']) - 1} more" if len(hit["spans"]) > 1 else ""
    part = f"{hit['part']} ({shown(hit['field'], 40)})"
    return (item, part, hit["method"], f"{hit['score']:.3f}", f"{start:,}-{end:,}{more}")


# --- Samples ------------------------------------------------------------------------------------------------------


def quarantine(contents: Contents) -> Iterator[Html]:
    """Show quarantined records with their reasons."""
    total = sum(sum(manifest.quarantined.values()) for manifest in contents.manifests.values())
    rows: list[Sequence[Child]] = []
    for manifest in contents.manifests.values():
        if manifest.quarantine and len(rows) < LISTED:
            sample = contents.sample(manifest.quarantine, ("reason", "evidence"), LISTED - len(rows))
            rows += [(manifest.stage, tag("code", row["reason"]), _locator(row), _evidence(row)) for row in sample]
    if rows:
        chosen = f", {len(rows)} of them chosen by hash" if total > len(rows) else ""
        lead = f"{count(total)} damaged records{chosen}."
        yield section("Quarantine", lead, table(("stage", "reason", "record", "evidence"), rows))


def kept_documents(contents: Contents) -> Iterator[Html]:
    """Show the beginnings of kept documents, after personal data was removed."""
    cleared = dropwhile(lambda each: not clears_personal_data(each.stage), contents.manifests.values())
    documents = [manifest for manifest in cleared if manifest.rows and refines(manifest.stage)]
    if not documents:
        return
    sample = contents.sample(documents[-1].shards, ("url", "title", "text", "language"), SAMPLES)
    rows = [
        (
            join((_address(row), tag("div", row.get("language") or "", css="dim"))),
            tag("blockquote", shown(row["text"] or "", 420), dir="auto"),
        )
        for row in sample
    ]
    lead = f"Chosen by a hash of their record, as they were after {documents[-1].stage}, cut to a few lines."
    yield section("Kept documents", lead, table(("from", "text"), rows))


def rejected_rows(contents: Contents) -> Iterator[Html]:
    """Show rejected rows of each stage, without their texts."""
    rows: list[Sequence[Child]] = []
    for manifest in contents.manifests.values():
        columns = ("url", "reason", "evidence")
        sample = contents.sample(manifest.rejects, columns, REJECTS_SHOWN) if manifest.rejects else []
        rows += [(manifest.stage, _address(row), tag("code", row["reason"]), _evidence(row)) for row in sample]
    if rows:
        lead = "Chosen by a hash of their record: address, reason and evidence, never the text."
        yield section("Rejected rows", lead, table(("stage", "from", "reason", "evidence"), rows))


def _address(row: Mapping[str, Any]) -> Html:
    """Return a record's address without query and e-mail addresses, or else its file and offset."""
    url = scrub_url(str(row.get("url") or "").partition("?")[0].partition("#")[0])
    return tag("span", shown(url, 120) or f"{shown(str(row['file']), 80)} @ {row['offset']}", css="long")


def _locator(row: Mapping[str, Any]) -> Html:
    record = f"{shown(str(row['file']), 80)} @ {row['offset']}"
    return join((record, tag("div", shown(str(row.get("record_id") or ""), 80), css="dim long")))


def _evidence(row: Mapping[str, Any]) -> Html:
    """Return a row's evidence in one line, without e-mail addresses: rules with values and bounds, or fields."""
    try:
        evidence = json.loads(row.get("evidence") or "null")
    except ValueError:
        evidence = None
    if isinstance(evidence, list) and all(isinstance(rule, dict) and "rule" in rule for rule in evidence):
        rules = (f"{rule['rule']} {rule.get('value')} / {rule.get('bound')}" for rule in evidence)
        return tag("code", shown(scrub_url("; ".join(rules)), 240))
    if isinstance(evidence, dict):
        fields = (f"{key} {_compact(value)}" for key, value in evidence.items() if value not in (None, ""))
        return tag("code", shown(scrub_url(", ".join(fields)), 240))
    return tag("span", "-", css="dim")


def _compact(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
