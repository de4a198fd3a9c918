"""Computes facts of the values of kept rows: quantiles, means and sums of columns, and shares of languages."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pipeline_tasks.gate.subject import Facts, Family, Subject, profiles_of, share
from pipeline_tasks.profiles.columns import quantile
from pipeline_tasks.stage import Stage

MIN_DOCUMENTS = 100
"""Documents of a language from which on its retention is a fact."""


def summarize_columns(subject: Subject) -> Facts:
    """Return sum, mean and quantiles of every profiled column of numbers; None where no row was kept."""
    facts: Facts = {}
    for name in subject.card.profiled:
        column = profiles_of(subject.manifest).get(name, {"kind": _kind(subject.card, name), "count": 0})
        if column["kind"] == "name":
            continue
        has_values = column["count"] > 0
        for at in (0.05, 0.5, 0.95):
            facts[f"{name}_p{round(at * 100):02d}"] = quantile(column, at) if has_values else None
        facts[f"{name}_mean"] = mean(column) if has_values else None
        facts[f"{name}_sum"] = column.get("sum")
    return facts


def _kind(card: Stage[Any], name: str) -> str:
    return "name" if name not in card.writes.names or pa.types.is_string(card.writes.field(name).type) else "number"


def mean(column: Mapping[str, Any]) -> float | None:
    """Return the mean of a column profile: exact for whole numbers, from the middle of its bins for ratios."""
    if "sum" in column:
        return share(column["sum"], column["count"])
    total = sum((int(key) + 0.5) * count for key, count in column["bins"].items())
    return share(total / 100, column["count"])


COLUMNS = Family(
    summarize_columns,
    {
        "<column>_p05, <column>_p50, <column>_p95": "quantiles of a profiled column of numbers",
        "<column>_mean, <column>_sum": "its mean and sum",
    },
)


def count_languages(subject: Subject) -> Facts:
    """Return each kept language's share, and the retention of languages with enough documents."""
    kept = profiles_of(subject.manifest).get("language", {}).get("bins", {})
    rejected = profiles_of(subject.manifest, "rejects").get("language", {}).get("bins", {})
    total = sum(kept.values())
    documents = {code: count + rejected.get(code, 0) for code, count in kept.items()}
    retention = {code: kept[code] / count for code, count in documents.items() if count >= MIN_DOCUMENTS}
    return {
        **{f"language_share.{code}": share(count, total) for code, count in kept.items()},
        **{f"language_retention.{code}": value for code, value in retention.items()},
        "language_retention_min": min(retention.values(), default=None),
    }


LANGUAGES = Family(
    count_languages,
    {
        "language_share.<code>": "share of the kept documents in this language",
        "language_retention.<code>": "share of the language's documents that were kept, from 100 documents up",
        "language_retention_min": "the smallest of them",
    },
)
