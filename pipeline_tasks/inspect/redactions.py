"""Lists what a stage found or replaced in texts, such as personal data: how often, and where; never the values."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline_tasks.cards import known_cards, stage_card
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import Spans
from pipeline_tasks.inspect.command import add_snapshot, number, print_result, version_of
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.inspect.rejects import stage_manifest
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.store.reading import clears_personal_data, read_shards


def spans_by_stage() -> dict[str, Spans]:
    """Return what each known stage says of its spans, those of personal data first: no version is named yet."""
    known = {card.name: card.spans for card in known_cards()}
    return {
        stage: spans
        for stage, spans in sorted(known.items(), key=lambda pair: not clears_personal_data(pair[0]))
        if spans
    }


@dataclass(frozen=True, slots=True)
class Choice:
    """Which documents: those whose ids begin with one of `ids` (none: all); which kinds; how many are listed."""

    ids: tuple[str, ...]
    kinds: tuple[str, ...]
    limit: int
    spans: Spans


@dataclass(frozen=True, slots=True)
class Redacted:
    """One document: what became of it, and its redactions as `schema.REDACTION` or `schema.TOXIC_SPAN` has them."""

    id: str
    url: str
    outcome: str
    redactions: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Redactions:
    """Redactions of each kind and the documents that have any, of all chosen ones; and the first of these documents.

    `actions` says what is done about each kind of personal data that is looked for; any other has no count.
    """

    counts: Mapping[str, int]
    documents: int
    listed: tuple[Redacted, ...]
    actions: Mapping[str, str] = field(default_factory=dict)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the snapshot, and which documents and kinds to list."""
    add_snapshot(parser)
    spans = spans_by_stage()
    usual, kinds = next(iter(spans)), [kind for each in spans.values() for kind in each.kinds]
    parser.add_argument("--stage", choices=spans, default=usual, help=f"whose places (default: {usual})")
    parser.add_argument("--document", action="append", default=[], metavar="ID", help="only ids that begin so")
    parser.add_argument("--kind", action="append", default=[], choices=kinds, help="only these; may be repeated")
    parser.add_argument("--limit", type=number(int, 0), default=20, metavar="N", help="documents listed (default: 20)")


def answer(options: argparse.Namespace) -> int:
    """Print the counts, and the redactions of the first documents that have any."""
    spans = spans_by_stage()[options.stage]
    if unknown := [kind for kind in options.kind if kind not in spans.kinds]:
        message = f"--kind {unknown[0]}: {options.stage} has {', '.join(spans.kinds)}; name its --stage"
        raise RecipeError(message)
    manifest = stage_manifest(options.root, version_of(options), options.stage)
    choice = Choice(tuple(options.document), tuple(options.kind) or spans.kinds, int(options.limit), spans)
    listed = redactions(options.root, manifest, choice)
    looked(options, len(listed.listed), [each.id for each in listed.listed])
    print_result(options, asdict(listed), lines_of(listed, options.stage, spans.kinds))
    return 0


def redactions(root: str, manifest: Manifest, choice: Choice) -> Redactions:
    """Return the redactions of a stage's kept and rejected documents, in their order.

    RecipeError if the stage ran before redactions were kept.
    """
    if manifest.schema and choice.spans.column not in dict(manifest.schema):
        message = f"{manifest.stage}/{manifest.fingerprint} has no redactions; refine the snapshot again to have them"
        raise RecipeError(message)
    counts: Counter[str] = Counter()
    documents = 0
    listed: list[Redacted] = []
    for document in _chosen(root, manifest, choice):
        counts.update(redaction["kind"] for redaction in document.redactions)
        documents += 1
        if len(listed) < choice.limit:
            listed.append(document)
    actions = actions_of(manifest)
    kinds = [kind for kind in choice.kinds if kind in actions or not choice.spans.actions]
    return Redactions({kind: counts[kind] for kind in kinds}, documents, tuple(listed), actions)


def actions_of(manifest: Manifest) -> dict[str, str]:
    """Return what a stage did about each kind that it looked for, nothing where it does the same about all.

    An older version of the stage looked for fewer kinds: it has no counts of the others.
    """
    spans, columns = stage_card(manifest.stage).spans, dict(manifest.schema)
    actions = spans.actions(manifest.params) if spans and spans.actions else {}
    return {kind: action for kind, action in actions.items() if f"pii_{kind}" in columns}


def _chosen(root: str, manifest: Manifest, choice: Choice) -> Iterator[Redacted]:
    for outcome, shards in (("kept", manifest.shards), ("rejected", manifest.rejects)):
        for batch in read_shards(root, shards, ("id", "url", choice.spans.column)):
            for row in batch.to_pylist():
                chosen = _of_kinds(row[choice.spans.column] or (), choice.kinds)  # none of an erased document
                if chosen and str(row["id"]).startswith(choice.ids or ("",)):
                    yield Redacted(str(row["id"]), str(row["url"] or ""), outcome, chosen)


def _of_kinds(redactions: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
    return tuple(redaction for redaction in redactions if redaction["kind"] in kinds)


def lines_of(listing: Redactions, stage: str, kinds: Iterable[str]) -> Iterator[str]:
    """Yield the counts, then each document with the places in its text before and after, as lines for a person."""
    for kind, count in listing.counts.items():
        yield f"{kind:<14}{count:>12,}  {listing.actions.get(kind, '')}".rstrip()
    yield f"{'documents':<14}{listing.documents:>12,}"
    if kept := [kind for kind in kinds if listing.actions and kind not in listing.actions]:
        yield f"not looked for: {', '.join(kept)} (`kinds` of {stage} gives them an action)"
    for document in listing.listed:
        yield ""
        yield f"{document.id}  {document.outcome}  {document.url}"
        for redaction in document.redactions:
            places = f"{redaction['start']:>9,} to {redaction['end']:,}{_fate(redaction)}"
            yield f"    {redaction['kind']:<13}{redaction.get('action') or '':<13}{places}"


def _fate(redaction: Mapping[str, Any]) -> str:
    """Return where the placeholder is, or why there is none."""
    if redaction["at"] is not None:
        return f", now at {redaction['at']:,}"
    return "" if redaction["used"] else ", mentioned or harmless"
