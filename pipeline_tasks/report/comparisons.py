"""Compares documents before and after the stages that judge or change them, by what their manifests store.

The four comparisons are those that a seed of this project draws (TokenTurbine, figures 4, 5, 6 and 8): integrity,
personal data, toxicity and perplexity. What no stage of a recipe measured says so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pipeline_tasks.cards import adds, of_stage, stage_card
from pipeline_tasks.counted import counted
from pipeline_tasks.gate.estimates import mean_of
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.merging import merge, quantile
from pipeline_tasks.profiles.signals import ALL, SIGNALS, quantiles_of, share_above
from pipeline_tasks.report.left_over import LeftOver
from pipeline_tasks.stage import Idle
from pipeline_tasks.store.reading import clears_personal_data
from pipeline_tasks.text.pii.kinds import COUNTS, KINDS

Unit = Literal["share", "value"]

INTEGRITY: Mapping[str, str] = {
    "c4.curly_brackets": "braces",
    "c4.lorem_ipsum": "lorem ipsum",
    "c4.javascript_lines": "notices on JavaScript",
    "seeds.code_keywords": "key words of code",
    "seeds.code_symbols": "symbols of code",
}
TOXICITY: Mapping[str, str] = {"seeds.listed_words": "listed words", "c4_badwords.bad_words": "bad words"}
"""Signals of `filter_quality`, and what a document has of which one is above 0."""

LABEL, PERPLEXITY = "toxicity_", "perplexity"
"""What the columns of labels begin with, and the column of the perplexity."""

QUANTILES = {"a twentieth is below": 0.05, "half is below": 0.5, "a twentieth is above": 0.95}
"""What of the perplexity is compared, besides its mean."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What was measured of the documents, before and after; `after` is None where nobody looked."""

    name: str
    before: float
    after: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A titled comparison: shares of documents with something, or values; `idle` says why it has no measures."""

    title: str
    note: str
    unit: Unit
    measures: tuple[Measure, ...]
    idle: str


Manifests = Mapping[str, Manifest]
"""Manifests by stage."""


def comparisons(manifests: Manifests, left: LeftOver | None = None) -> list[Comparison]:
    """Return the four comparisons of a version, those that are idle as well; `left` is what a sample of texts has."""
    judged = next((each for each in manifests.values() if SIGNALS in each.metrics), None)
    labeled, scored = (of_stage(manifests, partial(adds, column)) for column in ("toxic_hits", PERPLEXITY))
    scrubbed = of_stage(manifests, clears_personal_data)
    return [
        _comparison(
            "Integrity",
            "Share of the documents that filter_quality read, and of those that it kept, with any.",
            _signal_shares(judged, INTEGRITY),
            Idle("no profile counts braces or code", "name `c4` or `seeds` in `profiles` of `filter_quality`"),
        ),
        _comparison(
            "Personal data",
            f"Share of the documents in which {_reader(scrubbed)} found any, and {_sample(left)}.",
            _personal_data(scrubbed, left),
            Idle("nothing looks for personal data", "name `scrub_pii` in the recipe"),
        ),
        _toxicity(labeled, judged),
        _comparison(
            "Perplexity",
            f"Component perplexity of the documents that {_reader(scored)} read, and of those that it kept: 0 is "
            "disorder.",
            _perplexity(scored),
            Idle("no document has a perplexity", "name models in `language_models`; `refinery model lm` makes one"),
            unit="value",
        ),
    ]


def _reader(manifest: Manifest | None) -> str:
    return manifest.stage if manifest else "a stage"


def _toxicity(labeled: Manifest | None, judged: Manifest | None) -> Comparison:
    """Return the labels of words that offend, or of a recipe without such a stage the lists of a filter."""
    reader, of = f"{_reader(labeled or judged)} read", "label" if labeled else "list"
    return _comparison(
        "Toxicity",
        f"Share of the documents that {reader}, and of those that it kept, with any word of a {of}.",
        _labels(labeled) if labeled else _signal_shares(judged, TOXICITY),
        Idle("nothing looks for words that offend", "name `filter_toxicity` in the recipe"),
    )


def _labels(manifest: Manifest) -> Iterator[Measure]:
    """Yield the shares of documents with words of each label; `redact` leaves none of them in the texts."""
    is_redacted = manifest.params.get("action") == "redact"
    for column in (name for name in stage_card(manifest.stage).profiled if name.startswith(LABEL)):
        read, kept = _read(manifest, column), _profile(manifest, column, "kept")
        if read["count"]:
            label = column.removeprefix(LABEL).replace("_", " ")
            yield Measure(label, _share_above(read), 0.0 if is_redacted else _share_above(kept))


def _share_above(profile: Mapping[str, Any]) -> float:
    """Return the share of a profiled column's values above 0, 0 of none."""
    return 1 - profile["bins"].get("0", 0) / profile["count"] if profile["count"] else 0.0


def _comparison(title: str, note: str, measures: Iterator[Measure], idle: Idle, unit: Unit = "share") -> Comparison:
    known = tuple(measures)
    return Comparison(title, note, unit, known, "" if known else str(idle))


def _signal_shares(manifest: Manifest | None, names: Mapping[str, str]) -> Iterator[Measure]:
    """Yield the shares of documents with a signal above 0; none of a list of words that has no entry."""
    read, kept = (quantiles_of(manifest.metrics, side) if manifest else {} for side in ("read", "kept"))
    for signal, name in names.items():
        if signal in read and not (manifest and _has_no_list(signal, manifest.params)):
            after = kept.get(signal, {})
            yield Measure(name, share_above(read[signal][ALL]), share_above(after[ALL]) if after else 0.0)


def _has_no_list(signal: str, params: Mapping[str, Any]) -> bool:
    limits = params.get("limits", {}).get("seeds", {})
    return signal == "seeds.listed_words" and not limits.get("toxic_words")


def _sample(left: LeftOver | None) -> str:
    if left is None:
        return "the report of the snapshot says in which it is left"
    return f"of {counted(left.documents, 'document')} that left, chosen by hash, in which it would find any again"


def _personal_data(manifest: Manifest | None, left: LeftOver | None) -> Iterator[Measure]:
    """Yield the shares of documents with findings, and of a sample of the texts that are left."""
    for kind, column in zip(KINDS, COUNTS, strict=True) if manifest else ():
        profile = _read(manifest, column)
        if profile["count"]:
            after = left.found[kind] / left.documents if left and left.documents and kind in left.found else None
            yield Measure(column.removeprefix("pii_"), _share_above(profile), after)


def _perplexity(manifest: Manifest | None) -> Iterator[Measure]:
    sides = (_read(manifest, PERPLEXITY), _profile(manifest, PERPLEXITY, "kept"))
    means = [mean.value for side in sides if (mean := mean_of(side))]
    if len(means) == len(sides):
        yield Measure("mean", *means)
        for name, at in QUANTILES.items():
            yield Measure(name, *(quantile(side, at) for side in sides))


def _read(manifest: Manifest | None, column: str) -> Mapping[str, Any]:
    """Return the profile of a column over kept and rejected rows."""
    parts = [_profile(manifest, column, rows) for rows in ("kept", "rejects")]
    merged: Mapping[str, Any] = merge({column: part} for part in parts if part["count"])
    profile: Mapping[str, Any] = merged.get(column, EMPTY)
    return profile


EMPTY: Mapping[str, Any] = {"kind": "ratio", "count": 0, "bins": {}}


def _profile(manifest: Manifest | None, column: str, rows: str) -> Mapping[str, Any]:
    profiles: Mapping[str, Any] = manifest.metrics.get(rows, {}) if manifest else {}
    profile: Mapping[str, Any] = profiles.get(column, EMPTY)
    return profile
