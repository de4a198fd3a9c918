"""Computes how far a site's share of the documents rose, and how far the coverage of its pages fell."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from pipeline_tasks.gate import limits
from pipeline_tasks.gate.estimates import Facts, exact
from pipeline_tasks.gate.facts.amounts import TAIL, Amount
from pipeline_tasks.gate.facts.subject import Family, Subject
from pipeline_tasks.gate.suites import ENOUGH, SNAPSHOTS
from pipeline_tasks.manifest import Manifest, total
from pipeline_tasks.profiles.removals import arrivals, bins_of
from pipeline_tasks.profiles.sums import MILLIONTHS, SITE_COVERAGES

SITE = "site "

ENOUGH_PAGES = 30
"""Pages with sentences from which on the coverage of a site is compared: Student's t is nearly normal there."""


@dataclass(frozen=True, slots=True)
class Sites:
    """Documents that came in by site, as far as a manifest names sites; any other one has at most `unnamed`."""

    rows_in: int
    named: Mapping[str, int]
    unnamed: int

    def share(self, site: str) -> Amount:
        """Return a site's share of the documents, the largest possible one for a site without a name."""
        rows = self.named.get(site, self.unnamed)
        return Amount(rows / self.rows_in, limits.score_margin(rows, self.rows_in, TAIL))


def sites_of(manifest: Manifest) -> Sites:
    """Return the sites of a manifest: its largest ones."""
    named = {name: rows for name, rows in arrivals(manifest.metrics).items() if name.startswith(SITE)}
    left = max(manifest.rows_due - sum(named.values()), 0)
    return Sites(manifest.rows_due, named, min([left, *named.values()]))


def measure_sites(subject: Subject) -> Facts:
    """Return the largest rise of a site's share above its median, beyond chance; None without enough snapshots."""
    if "origins" not in subject.card.profiled:
        return {}
    before = [sites_of(manifest) for manifest in subject.trailing[-SNAPSHOTS:] if manifest.rows_in]
    now = sites_of(subject.manifest)
    if len(before) < ENOUGH or not now.named:
        return {"site_rise_max": None}
    rises = (_rise(now.share(site), [day.share(site) for day in before]) for site in now.named)
    return {"site_rise_max": exact(max(rises))}


def _rise(now: Amount, before: list[Amount]) -> float:
    """Return how far a share is above the median of earlier ones, less what chance explains."""
    usual, chance = median(amount.value for amount in before), median(amount.chance for amount in before)
    return max(now.value - usual - now.chance - chance, 0.0)


SITES = Family(
    measure_sites,
    {
        "site_rise_max": "largest rise of a site's share of the documents above its median in the trailing snapshots, "
        "beyond what chance explains",
    },
)


def site_coverages(manifest: Manifest, tail: float = TAIL) -> dict[str, Amount]:
    """Return the mean coverage of the texts of each site, of those with most pages, also of texts that were rejected.

    Sites of fewer than `ENOUGH_PAGES` pages have none.
    """
    rows, sums, squares = (
        total(bins_of(manifest.metrics, kind, name) for kind in ("kept", "rejects")) for name in SITE_COVERAGES
    )
    return {
        site: _mean(count, sums[site] / MILLIONTHS, squares[site] / MILLIONTHS, tail)
        for site, count in rows.items()
        if count >= ENOUGH_PAGES
    }


def _mean(count: int, values: float, squares: float, tail: float) -> Amount:
    mean = values / count
    variance = max(squares - count * mean**2, 0.0) / (count - 1)
    return Amount(mean, limits.mean_margin(variance, count, tail))


def measure_coverages(subject: Subject) -> Facts:
    """Return how far the coverage of a site fell at most since the previous snapshot, beyond chance."""
    if not {*SITE_COVERAGES} <= {*subject.card.profiled}:
        return {}
    now = site_coverages(subject.manifest)
    before = site_coverages(subject.previous) if subject.previous else {}
    falls = [
        before[site].value - now[site].value - before[site].chance - now[site].chance for site in now if site in before
    ]
    return {"site_coverage_fall_max": exact(max([0.0, *falls]) if falls else None)}


COVERAGES = Family(
    measure_coverages,
    {
        "site_coverage_fall_max": "largest fall of a site's mean `coverage` since the previous snapshot, beyond what "
        "chance explains; of the 64 sites with most pages, those with 30 pages of sentences in both",
    },
)
