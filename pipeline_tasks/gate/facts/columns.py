"""Computes facts of the values of kept rows: quantiles, means and sums of columns, and shares of languages."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from pipeline_tasks.gate.estimates import (
    ALONE,
    Estimate,
    Facts,
    exact,
    fraction_mean,
    mean_of,
    quantile_of,
    share,
    smallest,
)
from pipeline_tasks.gate.facts.subject import EMPTY, Family, Subject, profiles_of
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.profiles.sums import MILLIONTHS, MOMENTS
from pipeline_tasks.stage import Stage

MIN_DOCUMENTS = 100
"""Documents of a language from which on its retention counts: one that lost all of fewer may yet keep a twentieth."""


def summarize_columns(subject: Subject) -> Facts:
    """Return sum, mean and quantiles of every profiled column of numbers; None where no row has a value."""
    facts: Facts = {}
    for name, column in numeric_columns(subject):
        for at in (0.05, 0.5, 0.95):
            facts[f"{name}_p{round(at * 100):02d}"] = quantile_of(column, at)
        facts[f"{name}_read_p50"] = quantile_of(_read(subject, name), 0.5)
        facts[f"{name}_mean"] = mean_of(column)
        facts[f"{name}_sum"] = exact(column.get("sum"))
    return facts


def _read(subject: Subject, name: str) -> Mapping[str, Any]:
    """Return the profile of a column over kept and rejected rows."""
    parts = (profiles_of(subject.manifest, rows) for rows in ("kept", "rejects"))
    profile: Mapping[str, Any] = merge({name: part[name]} for part in parts if name in part).get(name, EMPTY)
    return profile


def numeric_columns(subject: Subject) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the profile of every profiled column of numbers; without values where no row was kept."""
    for name in subject.card.profiled:
        column = profiles_of(subject.manifest).get(name, {"kind": _kind(subject.card, name), "count": 0})
        if column["kind"] != "name":
            yield name, column


def _kind(card: Stage[Any], name: str) -> str:
    return "name" if name not in card.writes.names or pa.types.is_string(card.writes.field(name).type) else "number"


COLUMNS = Family(
    summarize_columns,
    {
        "<column>_p05, <column>_p50, <column>_p95": (
            "quantiles of a profiled column of numbers: the least value of their bin, an eighth of an octave or a "
            "hundredth wide; a bound within the bin is met"
        ),
        "<column>_mean, <column>_sum": "its mean and sum",
        "<column>_read_p50": "its median over kept and rejected rows",
    },
)


def count_languages(subject: Subject) -> Facts:
    """Return each kept language's share, each language's retention, and the smallest of those that have enough.

    A language of which no document was kept has a retention, too, unless the stage was told not to keep it.
    """
    kept = profiles_of(subject.manifest).get("language", {}).get("bins", {})
    rejected = _wanted(subject, profiles_of(subject.manifest, "rejects").get("language", {}).get("bins", {}))
    total = sum(kept.values())
    documents = {code: kept.get(code, 0) + rejected.get(code, 0) for code in sorted({**kept, **rejected})}
    return {
        **{f"language_share.{code}": share(count, total) for code, count in kept.items()},
        **{f"language_retention.{code}": share(kept.get(code, 0), count) for code, count in documents.items()},
        "language_retention_min": _smallest_retention(kept, documents),
    }


def _wanted(subject: Subject, rejected: Mapping[str, int]) -> Mapping[str, int]:
    """Return the rejected documents by language, without those in languages that the stage was not to keep."""
    languages = subject.card.languages
    wanted = languages(subject.manifest.params).kept if languages else ()
    return {code: count for code, count in rejected.items() if not wanted or code in wanted}


def _smallest_retention(kept: Mapping[str, int], documents: Mapping[str, int]) -> Estimate | None:
    """Return the smallest retention of the languages with enough documents, or that of the largest language."""
    enough = {code: count for code, count in documents.items() if count >= MIN_DOCUMENTS}
    enough = enough or dict(sorted(documents.items(), key=lambda pair: -pair[1])[:1])
    precision = ALONE.narrowed(max(len(enough), 1))
    return smallest(share(kept.get(code, 0), count, precision) for code, count in enough.items())


def score_means(manifest: Manifest) -> Iterator[tuple[str, int, float, float]]:
    """Yield language, rows, mean and variance of the score of the kept rows, of languages with rows.

    A manifest from before there were these profiles has none.
    """
    counts, sums, squares = (profiles_of(manifest).get(name, EMPTY)["bins"] for name in MOMENTS)
    for code, rows in sorted(counts.items()):
        if rows and code in sums and code in squares:
            mean = sums[code] / rows / MILLIONTHS
            spread = squares[code] / MILLIONTHS - rows * mean**2
            yield code, rows, mean, max(spread, 0.0) / max(rows - 1, 1)


def compare_scores(subject: Subject) -> Facts:
    """Return the mean score of each kept language."""
    means = score_means(subject.manifest)
    return {f"score_mean.{code}": fraction_mean(mean, rows) for code, rows, mean, _ in means}


SCORES = Family(compare_scores, {"score_mean.<code>": "mean score of the kept documents in this language"})


ENRICHED = ("document_type", "reading_level", "license_notice", "topic")
"""Columns of names that `enrich` and `topics` write; each says `unknown` where it does not know."""


def count_names(subject: Subject) -> Facts:
    """Return the share of the kept documents with each name of such a column; that of `unknown` always."""
    facts: Facts = {}
    for column in ENRICHED:
        if column in subject.card.profiled:
            bins = profiles_of(subject.manifest).get(column, EMPTY)["bins"]
            total = sum(bins.values())
            names = sorted({*bins, "unknown"})
            facts |= {f"{column}_share.{name}": share(bins.get(name, 0), total) for name in names}
    return facts


NAMES = Family(
    count_names,
    {
        "document_type_share.<type>, reading_level_share.<level>, license_notice_share.<kind>, topic_share.<topic>": (
            "share of the kept documents of which `enrich` or `topics` says this; `unknown` is one of them"
        )
    },
)


def count_truncated(subject: Subject) -> Facts:
    """Return the share of the kept pages that the crawler cut; none where the stage does not say."""
    if "truncated" not in subject.card.profiled:
        return {}
    cut = sum(profiles_of(subject.manifest).get("truncated", EMPTY)["bins"].values())
    return {"truncated_share": share(cut, subject.manifest.rows)}


TRUNCATED = Family(
    count_truncated,
    {"truncated_share": "share of the kept pages of which the crawler stored only the beginning (`WARC-Truncated`)"},
)


LANGUAGES = Family(
    count_languages,
    {
        "language_share.<code>": "share of the kept documents in this language",
        "language_retention.<code>": (
            "share of the language's documents that were kept, also of a language that is gone"
        ),
        "language_retention_min": "the smallest of the languages with 100 documents; if none has, of the largest one",
    },
)


def count_rights(subject: Subject) -> Facts:
    """Return what publishers said of the pages of `check_rights`; none of other stages."""
    if "opt_out" not in subject.card.profiled:
        return {}
    manifest = subject.manifest
    rejected = {reason: rows for reason, rows in manifest.rejected.items() if reason not in subject.card.no_page}
    pages = manifest.rows + sum(rejected.values())
    states = merge(profiles_of(manifest, rows) for rows in ("kept", "rejects")).get("robots_txt", EMPTY)["bins"]
    tags = sum(profiles_of(manifest).get("opt_out", EMPTY)["bins"].values())
    return {
        "opted_out_share": share(sum(rejected.values()), pages),
        "tagged_share": share(tags, manifest.rows),
        "robots_known_share": share(sum(states.values()), pages),
        "robots_unreachable_share": share(states.get("unreachable", 0), pages),
    }


RIGHTS = Family(
    count_rights,
    {
        "opted_out_share": "share of the pages that were rejected because of what their publishers say of their use",
        "tagged_share": "share of the kept pages that have such a signal, and are tagged with it",
        "robots_known_share": "share of the pages of whose host a robots.txt landed",
        "robots_unreachable_share": "share of the pages of whose host the robots.txt could not be had (status 5xx)",
    },
)
