"""Shows near duplicates that were removed beside the documents that are kept in their place."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pipeline_tasks.cards import copies_of
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.document.text_edits import scrubbed
from pipeline_tasks.inspect.document.word_differences import side_by_side
from pipeline_tasks.publish.logs.version_log import Version, stages_that
from pipeline_tasks.report.survivors import KINDS, Document, Pair, Tally, survivors, tallies
from pipeline_tasks.store.reading import read_manifest

ALL = 1 << 62
"""Bytes that may be read: a command has no bound."""


def drawn_pairs(root: str, version: Version, most: int, seed: int) -> list[Pair]:
    """Return the pairs that a seed draws, the same for the same version; RecipeError without near-dedup."""
    stages = stages_that(root, version, lambda stage: copies_of(stage).over_snapshots)
    if not stages:
        message = (
            f"{version.recipe} {version.snapshot} has no stage that removes near duplicates, so there are no pairs"
        )
        raise RecipeError(message)
    near = [read_manifest(root, version.manifests[stage]) for stage in stages]
    return survivors(root, version.recipe, near, most, seed=seed, within=ALL)


def pair_facts(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the pairs and what the losers had more of, for a program, without the texts."""
    return {"pairs": [*map(_facts, pairs)], "tallies": [*map(asdict, tallies(pairs))]}


def _facts(pair: Pair) -> dict[str, Any]:
    sides = {"removed": pair.loser, "kept": pair.winner}
    facts = {name: {"id": of.id, "snapshot": of.snapshot, "url": of.url, **of.measures} for name, of in sides.items()}
    proof = {name: getattr(pair, name) for name in ("stage", "similarity", "near", "superseded")}
    return {**facts, **proof, "removed_has_more": [kind for kind, sign in pair.more().items() if sign > 0]}


def pair_lines(root: str, version: Version, pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield the pairs side by side for a person, then how often each side has more."""
    for place, pair in enumerate(pairs, 1):
        yield from (f"--- pair {place} of {len(pairs)}  {pair.stage}, {pair.similarity:.3f} alike", "")
        yield from _compared(pair)
        removed, kept = (_seen(root, version, of) for of in (pair.loser, pair.winner))
        yield ""
        yield from side_by_side(removed, kept, ("removed", "kept in its place"))
        yield ""
    yield from _tally_lines(tallies(pairs)) if pairs else ["no near duplicate was removed whose texts are still there"]


def _seen(root: str, version: Version, document: Document) -> str:
    [text] = scrubbed(root, version, [document.text], document.language, document.url)
    return text


def _compared(pair: Pair) -> Iterator[str]:
    said = "superseded" if pair.superseded else "removed"
    for name, of in ((said, pair.loser), ("kept", pair.winner)):
        yield f"{name:<12}{of.id[:12]} of {of.snapshot}  {of.crawled_at}  {of.url}"
    for kind, sign in pair.more().items():
        values = [_value(kind, of) for of in (pair.loser, pair.winner)]
        more = {1: "more", -1: "less", 0: "alike"}[sign]
        yield f"{kind:<18}{values[0]:>14} {values[1]:>14}  {more}"


def _value(kind: str, document: Document) -> str:
    value = document.measures[kind]
    if kind == "date":
        return document.crawled_at[:10]
    return f"{value:,.0f}" if kind == "length" else f"{value:.3f}"


def _tally_lines(tallies_: Sequence[Tally]) -> Iterator[str]:
    yield f"{'':<18}{'pairs':>8}{'removed has more':>20}{'kept has more':>16}{'alike':>8}"
    for of in tallies_:
        alike = of.compared - of.loser - of.winner
        yield f"{of.kind:<18}{of.compared:>8,}{of.loser:>20,}{of.winner:>16,}{alike:>8,}"
    for kind in [kind for kind in KINDS if kind not in {of.kind for of in tallies_}]:
        yield f"{kind:<18}{'-':>8}   known of no pair: no stage before near-dedup gives it"
