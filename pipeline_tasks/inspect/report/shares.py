"""Gives the shares of a version's languages, largest sites, types and topics, and what they were in versions before."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from statistics import median

from pipeline_tasks.cards import is_stage, stage_card
from pipeline_tasks.gate.facts.sites import SITE, Sites, sites_of
from pipeline_tasks.gate.suites import ENOUGH, SNAPSHOTS
from pipeline_tasks.plots.languages import LanguageShare
from pipeline_tasks.profiles.removals import LARGEST, arrivals, bins_of
from pipeline_tasks.publish.logs.version_log import Version, stages_of
from pipeline_tasks.store.reading import read_manifest

LANGUAGE, ORIGINS = "language", "origins"

NAMES = ("topic", "document_type")
"""Columns of names whose shares are followed over snapshots."""

FOLLOWED = 30
"""Snapshots over which they are followed."""

Counts = Mapping[str, int]
"""Documents by language."""


@dataclass(frozen=True, slots=True)
class Languages:
    """The languages of a version: the stage that they came into, the one after which they are kept, their shares."""

    first: str
    last: str
    shares: tuple[LanguageShare, ...]


@dataclass(frozen=True, slots=True)
class SiteShare:
    """A site's documents, its share of all that came in, and how far that is from its median in trailing snapshots.

    `change` is a difference of two shares, None without enough snapshots. It is the least possible one if `at_least`:
    a manifest names its largest sites only. `loss` is the largest share that one stage removed, `stage` ("" if none).
    """

    name: str
    rows: int
    share: float
    change: float | None
    at_least: bool
    loss: float
    stage: str


def language_shares(root: str, version: Version, earlier: Sequence[Version]) -> Languages | None:
    """Return the languages of a version, those with the largest share now or before first; None if none is counted.

    They come into the first stage that counts them, and are kept after the last one, of those before copies are made.
    """
    stages = _counting(root, version, LANGUAGE)
    if not stages:
        return None
    first, last = stages[0], stages[-1]
    rows_in, rows = _languages(root, version.manifests[first])[0], _languages(root, version.manifests[last])[1]
    before = [_languages(root, each.manifests[last])[1] for each in _trailing(earlier, last)]
    previous = _languages(root, earlier[-1].manifests[last])[1] if earlier and last in earlier[-1].manifests else {}
    codes = {code for counts in (rows_in, rows, *before) for code in counts}
    shares = [
        LanguageShare(
            code=code,
            rows_in=rows_in.get(code, 0),
            rows=rows.get(code, 0),
            share=_share(rows, code) or 0.0,
            previous=_share(previous, code),
            usual=_usual(share for counts in before if (share := _share(counts, code)) is not None),
        )
        for code in codes
    ]
    shares.sort(key=lambda language: (-max(share or 0 for share in language.shares), -language.rows_in, language.code))
    return Languages(first, last, tuple(shares)) if shares else None


def site_shares(root: str, version: Version, earlier: Sequence[Version]) -> list[SiteShare]:
    """Return the largest sites of a version, at most `LARGEST`, as they came into the first stage that counts them."""
    stages = _counting(root, version, ORIGINS)
    if not stages:
        return []
    now = _sites(root, version.manifests[stages[0]])[0]
    before = [_sites(root, each.manifests[stages[0]])[0] for each in _trailing(earlier, stages[0])]
    usual = [day for day in before if day.rows_in]
    losses = {stage: _sites(root, version.manifests[stage])[1] for stage in stages}
    largest = sorted(now.named, key=lambda site: (-now.named[site], site))[:LARGEST]
    return [_site(site, now, usual, losses) for site in largest]


def name_courses(
    root: str, version: Version, earlier: Sequence[Version]
) -> Iterator[tuple[str, Sequence[tuple[str, Mapping[str, float]]]]]:
    """Yield each column of `NAMES` that a version counts, with the shares of its names by snapshot, this one last.

    A snapshot whose versions do not count it is left out.
    """
    for column in NAMES:
        stages = _counting(root, version, column)
        if stages:
            snapshots = [each for each in (*earlier[1 - FOLLOWED :], version) if stages[-1] in each.manifests]
            counts = [(each.snapshot, _kept(root, each.manifests[stages[-1]], column)) for each in snapshots]
            yield column, [(snapshot, _shares(names)) for snapshot, names in counts if names]


def _shares(counts: Counts) -> Mapping[str, float]:
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}


@lru_cache(maxsize=512)
def _kept(root: str, referred: str, column: str) -> Counts:
    """Return a manifest's kept documents by the names of a column; its reference has its digest."""
    return bins_of(read_manifest(root, referred).metrics, "kept", column)


def _site(site: str, now: Sites, before: Sequence[Sites], losses: Mapping[str, Mapping[str, float]]) -> SiteShare:
    share = now.named[site] / now.rows_in
    most = _usual(day.share(site).value for day in before)
    least = _usual(day.named.get(site, 0) / day.rows_in for day in before)
    loss, stage = max(((lost[site], stage) for stage, lost in losses.items() if site in lost), default=(0.0, ""))
    return SiteShare(
        name=site.removeprefix(SITE),
        rows=now.named[site],
        share=share,
        change=None if most is None else share - most,
        at_least=least != most,
        loss=loss,
        stage=stage if loss else "",
    )


def _counting(root: str, version: Version, column: str) -> list[str]:
    """Return the stages of a version that count a column of documents, in order.

    They are those up to where copies are made, or documents of generated texts: behind that rows are no pages.
    """
    cards = [stage_card(stage) for stage in stages_of(root, version) if is_stage(stage)]
    of_pages = takewhile(lambda card: card.conserves == "rows", cards)
    return [card.name for card in of_pages if column in card.profiled]


def _trailing(earlier: Sequence[Version], stage: str) -> Iterator[Version]:
    return (version for version in earlier[-SNAPSHOTS:] if stage in version.manifests)


def _usual(shares: Iterable[float]) -> float | None:
    """Return the median of shares in trailing snapshots; None if they are too few."""
    known = [*shares]
    return median(known) if len(known) >= ENOUGH else None


def _share(counts: Counts, code: str) -> float | None:
    """Return the share of a language; None if nothing is counted."""
    total = sum(counts.values())
    return counts.get(code, 0) / total if total else None


@lru_cache(maxsize=512)
def _languages(root: str, referred: str) -> tuple[Counts, Counts]:
    """Return a manifest's documents by language, those that came in and those kept; its reference has its digest."""
    metrics = read_manifest(root, referred).metrics
    kept, rejected = (bins_of(metrics, rows, LANGUAGE) for rows in ("kept", "rejects"))
    return {code: kept.get(code, 0) + rejected.get(code, 0) for code in {**kept, **rejected}}, kept


@lru_cache(maxsize=512)
def _sites(root: str, referred: str) -> tuple[Sites, Mapping[str, float]]:
    """Return a manifest's sites, and the share of its documents that each of them lost."""
    manifest = read_manifest(root, referred)
    rows_in, lost = arrivals(manifest.metrics), bins_of(manifest.metrics, "rejects", ORIGINS)
    sites = sites_of(manifest)
    return sites, {site: lost.get(site, 0) / rows_in[site] for site in sites.named}
