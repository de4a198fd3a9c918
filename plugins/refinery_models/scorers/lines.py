"""Writes reports of checks and of trainings as people read them."""

from collections.abc import Iterator, Mapping
from typing import Any

SOURCES_SHOWN = 5
"""Sources that are shown, those with the least spread."""

MOVED_SHOWN = 5
"""Documents that moved most, as they are shown."""


def check_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the report of a check as people read it."""
    sample = report["sample"]
    languages = ", ".join(f"{code or '?'} {count}" for code, count in sample["languages"].items())
    yield f"{report['kind']} {report['model'][:12]}: {report['outcome']}"
    yield f"{sample['texts']:,} texts ({languages}), {sample['labelled']:,} with a label"
    for name, figures in report["facts"].items():
        yield f"  {name:<20}{_figures(figures)}"
    for source in sorted(report["tables"]["sources"], key=lambda source: source["deviation"])[:SOURCES_SHOWN]:
        where = f"{source['name']} ({source['group']})"
        yield f"  least spread: {where}: {source['deviation']:.3f} of {source['documents']}"
    for title, bounds in (("violated", report["failures"]), ("undecided", report["undecided"])):
        for bound in bounds:
            limits = ", ".join(f"{name} {limit:g}" for name, limit in bound["bound"].items())
            yield f"{bound['severity']}, {title}: {bound['column']} {bound['observed']:g} ({limits}). {bound['why']}"
    for skipped in report["skipped"]:
        yield f"not judged: {skipped}"


def _figures(figures: list[float] | None) -> str:
    if figures is None:
        return "-"
    value, low, high, count = figures
    if value == low == high == count:
        return f"{count:,.0f}"
    interval = "" if low == high else f" [{low:.3f}, {high:.3f}]"
    return f"{value:.3f}{interval} of {count:,.0f}"


def training_lines(report: Mapping[str, Any], output: str) -> Iterator[str]:
    """Yield the report of a training as people read it."""
    texts, sites = report["texts"], report["sites"]
    yield f"{output}: {report['kind']} {report['model'][:12]}, label {report['label']}"
    yield (
        f"trained on {texts['good_trained']:,} good texts and {texts['other_trained']:,} others of "
        f"{sites['trained']:,} sites; {texts['good_held_out']:,} and {texts['other_held_out']:,} of "
        f"{sites['held_out']:,} other sites are held out"
    )
    if not report["is_matched"]:
        yield "good texts name no language, so languages are not matched: the model may have learned a language"
    yield f"AUC on held-out sites {_held_out(report['held_out'])}"
    yield f"AUC on what it was trained on {_held_out(report['trained'])}"
    for code, figures in report["by_language"].items():
        yield f"  {code or '?'}: {_held_out(figures)}"
    if report["against"]:
        yield from _comparison(report["against"])


def _comparison(against: Mapping[str, Any]) -> Iterator[str]:
    agreement = "-" if against["agreement"] is None else f"{against['agreement']:.3f}"
    yield (
        f"against {against['old'][:12]}: rank agreement {agreement}, mean shift {against['shift']:+.3f}, "
        f"{against['moved_share']:.1%} of {against['documents']:,} documents moved by a quarter; its AUC is "
        f"{_held_out(against['held_out'])}"
    )
    for moved in against["moved"][:MOVED_SHOWN]:
        yield f"  {moved['id']} ({moved['source'] or 'no site'}): from {moved['from']:.2f} to {moved['to']:.2f}"


def _held_out(figures: list[float]) -> str:
    if not figures:
        return "-"
    value, low, high, pairs = figures
    return f"{value:.3f} [{low:.3f}, {high:.3f}] of {pairs:,.0f} pairs"
