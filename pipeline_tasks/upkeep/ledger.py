"""Makes the ledger anew from the root, when it is damaged, lost, or wrong."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.command import add_json, add_root, print_result
from pipeline_tasks.ledger import ledger_of
from pipeline_tasks.ledger.rebuilding import Rebuilt, rebuild


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root."""
    add_root(parser)
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Rebuild the ledger and print what it has; return ContractError's exit code if some of the root is unreadable."""
    rebuilt = rebuild(options.root, ledger_of(options.root))
    print_result(options, asdict(rebuilt), rebuilt_lines(rebuilt))
    return ContractError.exit_code if rebuilt.missing else 0


def rebuilt_lines(rebuilt: Rebuilt) -> Iterator[str]:
    """Yield what the new ledger has, and what it lacks, as lines for a person."""
    yield f"ledger    {rebuilt.ledger}"
    yield (
        f"root      {rebuilt.versions} versions, {rebuilt.retractions} retractions, {rebuilt.manifests} manifests and "
        f"{rebuilt.verdicts} verdicts"
    )
    if rebuilt.old:
        copied = ", ".join(f"{rows} of {table}" for table, rows in rebuilt.copied.items() if rows) or "none"
        yield f"old       now {rebuilt.old}; rows copied: {copied}"
    if rebuilt.unread:
        yield f"lost      damaged in the old ledger, rows may be missing: {', '.join(rebuilt.unread)}"
    if not rebuilt.copied.get("stage_metrics"):
        yield "lost      costs, engines and unpublished stages: only a ledger knows them"
    for snapshot in rebuilt.retracted:
        yield f"lost      was retracted, and the log does not say so; leave it out, or retract it again: {snapshot}"
    for problem in rebuilt.missing:
        yield f"PROBLEM   not recorded: {problem}"
