"""Compares two versions, of one recipe or two: settings, code and inputs, rows, distributions, documents by id."""

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipeline_tasks.inspect.chosen import document_manifest, named_version, ordered_manifests
from pipeline_tasks.inspect.command import add_json, add_recipe, print_result, recipe_of
from pipeline_tasks.inspect.diff.document_sets import BY, Amount, Comparison, Groups, Side, compare_documents
from pipeline_tasks.inspect.diff.stages import (
    Difference,
    Manifests,
    Shift,
    StageDifference,
    names_of,
    shifts,
    stage_differences,
)
from pipeline_tasks.inspect.recipe.recipe_verdicts import said, verdict_between
from pipeline_tasks.inspect.report.shares import language_shares
from pipeline_tasks.publish.logs.ablation_log import Ablation
from pipeline_tasks.publish.logs.version_log import Version

SHOWN = 60
"""Characters of a setting in the table; `--json` has all of it."""

MOST_GROUPS = 12
"""Groups of a column in the table, those with most documents."""

MOST_REASONS = 4
"""Reasons in the table of those whose rows differ at a stage, the most frequent."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The documents of a language that came into the stages that count languages, and that they kept, in both."""

    language: str
    rows_in: tuple[int, int]
    rows: tuple[int, int]

    @property
    def shares(self) -> tuple[float | None, float | None]:
        """The share that was kept in each; None where none came in."""
        a, b = (rows / rows_in if rows_in else None for rows, rows_in in zip(self.rows, self.rows_in, strict=True))
        return a, b


@dataclass(frozen=True, slots=True)
class Diff:
    """How version `b` differs from version `a`.

    `groups` has, by column and value, the amounts of both: documents alone from manifests, or documents and tokens
    where documents were read. `documents` is None where they were not. `verdict` is the newest ablation of both, None
    without one.
    """

    a: Version
    b: Version
    stages: tuple[StageDifference, ...]
    shifts: tuple[Shift, ...]
    groups: Mapping[str, Mapping[str, tuple[Amount, Amount]]]
    documents: Comparison | None
    retention: tuple[Retention, ...] = ()
    verdict: Ablation | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two versions, the root, and what to read."""
    what = "version number, or a snapshot for its newest version; RECIPE:NAME for one of another recipe"
    parser.add_argument("a", metavar="A", help=what)
    parser.add_argument("b", metavar="B", help=f"the other {what}")
    add_recipe(parser)
    parser.add_argument("--documents", action="store_true", help="compare ids and tokens; reads every shard of both")
    parser.add_argument(
        "--to", default="", metavar="FOLDER", help="write added.txt, removed.txt, superseded.txt; implies --documents"
    )
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Print what differs."""
    recipe = recipe_of(options)
    a, b = (named_version(options.root, recipe, name) for name in (options.a, options.b))
    diff = compare(options.root, a, b, documents=options.documents or bool(options.to), to=options.to)
    print_result(options, diff_facts(diff), diff_lines(diff))
    return 0


def compare(root: str, a: Version, b: Version, *, documents: bool = False, to: str = "") -> Diff:
    """Return what differs between two versions; only with `documents` are shards read, not manifests alone."""
    left, right = (ordered_manifests(root, version) for version in (a, b))
    sides = _side(root, left), _side(root, right)
    compared, groups = None, _profiled_groups(left, right)
    if documents and sides[0] and sides[1]:
        compared, before, now = compare_documents(sides[0], sides[1], to)
        groups = {by: _paired(before, now, by) for by in BY}
    stages, shifted = tuple(stage_differences(left, right)), tuple(shifts(left, right))
    return Diff(a, b, stages, shifted, groups, compared, _retention(root, a, b), verdict_between(root, a, b))


def _retention(root: str, a: Version, b: Version) -> tuple[Retention, ...]:
    """Return the retention of each language in both versions, the largest language first; none if one counts none."""
    counted = [language_shares(root, version, ()) for version in (a, b)]
    if not all(counted):
        return ()
    left, right = ({share.code: (share.rows_in, share.rows) for share in each.shares} for each in counted if each)
    none = 0, 0
    pairs = {code: (left.get(code, none), right.get(code, none)) for code in {**left, **right}}
    codes = sorted(pairs, key=lambda code: (-max(rows_in for rows_in, _ in pairs[code]), code))
    return tuple(Retention(code, *_transposed(*pairs[code])) for code in codes)


def _transposed(a: tuple[int, int], b: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    return (a[0], b[0]), (a[1], b[1])


def _side(root: str, manifests: Manifests) -> Side | None:
    documents = document_manifest(manifests)
    return Side(root, documents, tuple(manifests.values())) if documents else None


def _profiled_groups(a: Manifests, b: Manifests) -> dict[str, dict[str, tuple[Amount, Amount]]]:
    """Return the documents by group as manifests have them, of the columns of which both have them."""
    before, now = ({by: {k: Amount(n, 0) for k, n in names_of(part, by).items()} for by in BY} for part in (a, b))
    return {by: _paired(before, now, by) if before[by] and now[by] else {} for by in BY}


def _paired(before: Groups, now: Groups, by: str) -> dict[str, tuple[Amount, Amount]]:
    none = Amount(0, 0)
    return {name: (before[by].get(name, none), now[by].get(name, none)) for name in sorted({*before[by], *now[by]})}


# --- Output ---------------------------------------------------------------------------------------------------------


def diff_facts(diff: Diff) -> dict[str, Any]:
    """Return what differs as plain JSON values."""
    sizes = ("number", "recipe", "snapshot", "documents", "tokens", "sequences", "tokenizer")
    return {
        **{side: {name: getattr(version, name) for name in sizes} for side, version in (("a", diff.a), ("b", diff.b))},
        "stages": [asdict(stage) for stage in diff.stages],
        "shifts": [asdict(shift) | {"size": shift.size} for shift in diff.shifts],
        "groups": {
            by: {name: {"a": asdict(a), "b": asdict(b)} for name, (a, b) in groups.items()}
            for by, groups in diff.groups.items()
        },
        "retention": [asdict(language) | {"shares": language.shares} for language in diff.retention],
        "documents": diff.documents and asdict(diff.documents),
        "verdict": diff.verdict and asdict(diff.verdict),
    }


def diff_lines(diff: Diff) -> Iterator[str]:
    """Yield what differs for a person."""
    yield from _size_lines(diff)
    if diff.verdict:
        yield f"verdict: {said(diff.verdict)}; below 0 is better"
    yield ""
    yield f"{'stage':<18}{'rows in':>26}{'rows kept':>26}"
    for stage in diff.stages:
        yield f"{stage.stage:<18}{_pair(*stage.rows_in):>26}{_pair(*stage.rows):>26}{_only_in(stage)}"
        yield from (f"    {_setting(difference)}" for difference in stage.differences)
        yield from _reason_lines(stage)
    if diff.shifts:
        yield ""
        yield f"{'column':<18}{'stage':<18}{'PSI':>8}{'median':>22}"
        yield from (_shift_line(shift) for shift in diff.shifts)
    yield from _retention_lines(diff)
    for by, groups in diff.groups.items():
        yield from _group_lines(by, groups, has_tokens=diff.documents is not None and _has_tokens(diff))
    yield ""
    yield from _document_lines(diff.documents)


def _size_lines(diff: Diff) -> Iterator[str]:
    for side, version in (("A", diff.a), ("B", diff.b)):
        yield f"{side}: {version.recipe} version {version.number}, snapshot {version.snapshot}"
    for name in ("documents", *(("tokens", "sequences") if _has_tokens(diff) else ())):
        yield f"{name:<18}{_pair(getattr(diff.a, name), getattr(diff.b, name)):>26}"


def _has_tokens(diff: Diff) -> bool:
    """Return whether one of the versions is of a build: a snapshot's have documents alone."""
    return bool(diff.a.tokens or diff.b.tokens)


def _pair(a: int | None, b: int | None) -> str:
    left, right = ("-" if value is None else f"{value:,}" for value in (a, b))
    return left if left == right else f"{left} -> {right}"


def _only_in(stage: StageDifference) -> str:
    """Return the mark of a stage that one of the versions lacks."""
    return "" if all(stage.present) else f"  only in {'A' if stage.present[0] else 'B'}"


def _reason_lines(stage: StageDifference) -> Iterator[str]:
    differing = {reason: pair for reason, pair in stage.reasons.items() if pair[0] != pair[1]}
    for reason, (a, b) in [*differing.items()][:MOST_REASONS]:
        yield f"    {reason}: {_pair(a, b)} rows"
    if len(differing) > MOST_REASONS:
        yield f"    ... and {len(differing) - MOST_REASONS:,} more reasons; --json has all"


def _retention_lines(diff: Diff) -> Iterator[str]:
    if not diff.retention:
        return
    yield ""
    yield f"{'language':<18}{'came in':>26}{'kept':>26}{'retention':>20}"
    for language in diff.retention[:MOST_GROUPS]:
        a, b = ("-" if share is None else f"{share:.1%}" for share in language.shares)
        shares = a if a == b else f"{a} -> {b}"
        yield f"{language.language:<18}{_pair(*language.rows_in):>26}{_pair(*language.rows):>26}{shares:>20}"


def _setting(difference: Difference) -> str:
    return f"{difference.setting}: {setting_text(difference.a)} -> {setting_text(difference.b)}"


def setting_text(value: object) -> str:
    """Return a setting in short; of many elements their number."""
    if value is None:
        return "not set"
    if isinstance(value, list) and len(json.dumps(value)) > SHOWN:
        return f"{len(value):,} of its own"
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _shift_line(shift: Shift) -> str:
    medians = "" if shift.a is None or shift.b is None else f"{shift.a:g} -> {shift.b:g}"
    index = "-" if shift.known_psi is None else f"{shift.psi:.3f}"
    return f"{shift.column:<17} {shift.stage:<17} {index:>8}{medians:>22}  {shift.size}".rstrip()


def _group_lines(by: str, groups: Mapping[str, tuple[Amount, Amount]], *, has_tokens: bool) -> Iterator[str]:
    if not groups:
        return
    yield ""
    yield f"{by:<18}{'documents':>26}" + (f"{'tokens':>34}" if has_tokens else "")
    most = sorted(groups, key=lambda name: (-sum(amount.documents for amount in groups[name]), name))
    for name in most[:MOST_GROUPS]:
        a, b = groups[name]
        tokens = f"{_pair(a.tokens, b.tokens):>34}" if has_tokens else ""
        yield f"{name:<18}{_pair(a.documents, b.documents):>26}{tokens}"
    if len(most) > MOST_GROUPS:
        yield f"... and {len(most) - MOST_GROUPS:,} more; --json has all"


def _document_lines(documents: Comparison | None) -> Iterator[str]:
    if documents is None:
        yield "documents by id and tokens by group: not read; --documents reads them"
        return
    yield f"{'documents in both':<24}{documents.common:>16,}"
    yield f"{'only in B (added)':<24}{documents.added:>16,}"
    yield f"{'only in A (removed)':<24}{documents.removed:>16,}, of which B supersedes {documents.superseded:,}"
