"""Re-checks what is stored, from the log of versions to the last byte of the published tokens."""

import argparse
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

from pipeline_tasks.counted import counted
from pipeline_tasks.engines.each import HERE
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.command import EVERY, add_engine, add_snapshot, number, on_of, print_result, recipe_of
from pipeline_tasks.inspect.verify.findings import Account, Findings, Problem
from pipeline_tasks.inspect.verify.scores import Sample, rescored_lines
from pipeline_tasks.inspect.verify.verification import Report, Scope, report_facts, verify
from pipeline_tasks.recipe import VERIFY
from pipeline_tasks.seams import all_parts

COMPARISONS = "refinery.comparisons"
"""The seam of what a root is compared with that lies outside of it: modules that are a `Comparison` each."""


class Comparison(Protocol):
    """What `refinery verify` does instead of verifying a root by itself, if an option says so."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add its options."""

    def answer(self, options: argparse.Namespace) -> int | None:
        """Print what the root is against what its options name; return the exit code, None if they name nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the snapshot, how much to read, and a digest to compare with."""
    add_snapshot(parser, EVERY)
    parser.add_argument("--fast", action="store_true", help="check sizes, and bytes of JSON and small objects only")
    parser.add_argument(
        "--scores", type=number(int, 0), default=0, metavar="N", help="score N documents again by each model"
    )
    parser.add_argument(
        "--model", action="append", default=[], metavar="NAME=PATH", help="where a classifier's model is"
    )
    add_engine(parser)
    parser.add_argument("--head", default="", metavar="DIGEST", help="a log's head in an archived report: is it there?")
    for comparison in _comparisons():
        comparison.add_arguments(parser)


def answer(options: argparse.Namespace) -> int:
    """Print the report; return ContractError's exit code if there is a problem."""
    for comparison in _comparisons():
        if (code := comparison.answer(options)) is not None:
            return code
    sample, recipe = Sample(options.scores, dict(map(_named, options.model))), ""
    with suppress(RecipeError, ContractError):  # several recipes, of which nobody has named one, or a damaged log
        recipe = recipe_of(options)
    on = on_of(VERIFY, recipe, options, HERE.workers)
    scope = Scope(options.recipe, options.snapshot, full=not options.fast, archived=options.head, scores=sample, on=on)
    report = verify(options.root, scope)
    print_result(options, report_facts(report), report_lines(report))
    return ContractError.exit_code if report.findings.problems else 0


def _comparisons() -> Iterator[Comparison]:
    for part in all_parts(COMPARISONS).values():
        comparison: Comparison = part.load()
        yield comparison


def _named(model: str) -> tuple[str, str]:
    """Return the classifier's name and the path of `NAME=PATH`; RecipeError for anything else."""
    name, equals, path = model.partition("=")
    if not (name and equals and path):
        message = f"--model {model}: write NAME=PATH, the name of a classifier and where its model is"
        raise RecipeError(message)
    return name, path


def report_lines(report: Report) -> Iterator[str]:
    """Yield the report as lines for a person."""
    for account in report.accounts:
        yield from account_lines(account)
    findings = report.findings
    counted = ", ".join(f"{count:,} {kind}" for kind, count in sorted(findings.checked.items()))
    yield f"checked    {counted or 'nothing'}; {findings.bytes / 1e6:,.1f} MB read ({report.mode})"
    yield from rescored_lines(report.scores)
    for log in report.logs:
        yield f"head       {log.recipe} {log.head['number']}: {log.head['sha256']}"
    for log in report.root_logs:
        if log.digests:
            yield f"head       log of {log.recipe} {log.head['number']}: {log.head['sha256']}"
    yield from finding_lines(findings)
    yield _conclusion(len(findings.problems), report)


def finding_lines(findings: Findings) -> Iterator[str]:
    """Yield the notes and the problems of a verification."""
    for note in sorted(findings.notes):
        yield f"note       {note}"
    for problem in sorted(findings.problems, key=str):
        yield from problem_lines(problem)


def _conclusion(problems: int, report: Report) -> str:
    if problems:
        return counted(problems, "problem")
    full = report.mode == "full"
    read = "every byte is as it was written" if full else "all sizes and small objects are as written"
    skipped = ", ".join(sorted({each.classifier for each in report.scores if each.skipped}))
    lacking = f"; scores of {skipped} were not computed again" if skipped else ""
    return f"every record is accounted for, and {read}{lacking}"


def account_lines(account: Account) -> Iterator[str]:
    """Yield the records of a version."""
    yield f"{account.recipe} version {account.version}, snapshot {account.snapshot}"
    more = f" and {counted(account.copies, 'copy', 'copies')}" if account.copies else ""
    more += f" and {counted(account.offspring, 'generated text')}" if account.offspring else ""
    yield f"  records    {account.records:,} in{more} = {counted(account.published, 'document')} published"
    for reason, count in sorted(account.rejected.items(), key=lambda pair: -pair[1]):
        yield f"             {count:>10,} {reason}"


def problem_lines(problem: Problem) -> Iterator[str]:
    """Yield a problem and the way to heal it."""
    yield f"PROBLEM    {problem.object}: {problem.problem}"
    if problem.expected:
        yield f"  expected {problem.expected}"
    if problem.actual:
        yield f"  is       {problem.actual}"
    if problem.heal:
        yield f"  heal     {problem.heal}"
