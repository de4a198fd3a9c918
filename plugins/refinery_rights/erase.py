"""`refinery erase` completes takedowns: below a root nothing is left of what the documents said."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.gate.checks import check_overrides
from pipeline_tasks.inspect.command import add_json, add_refining, add_root, overrides_of, print_result, whoami
from pipeline_tasks.inspect.search.find import current_versions, uses
from pipeline_tasks.ledger.lost_log import require_takedowns
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import LOCAL
from pipeline_tasks.store.erasures import erasures, newest
from pipeline_tasks.store.storage import absolute
from pipeline_tasks.store.taken_down import Takedown, held_behind, takedowns, taken_down
from pipeline_tasks.upkeep.followers import follow, followers
from pipeline_tasks.upkeep.rewriting.replacing import ErasedMeanwhile, meanwhile
from refinery_rights.erasing.documents import Documents
from refinery_rights.erasing.erasing import certify, erase, fence, finish, planned
from refinery_rights.erasing.survey import Survey, survey
from refinery_rights.takedown import gates_of_takedown, republish, republished_line

ROUNDS = 3
"""How often a root is looked at and erased at most: the last look finds nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, who erases, and whether to."""
    add_root(parser)
    parser.add_argument("--dry-run", action="store_true", help="only list what would be done, and its cost")
    parser.add_argument(
        "--who",
        "--by",
        dest="by",
        default="",
        metavar="NAME",
        help="who erases, for the certificate (default: user and machine)",
    )
    parser.add_argument(
        "--alone",
        action="store_true",
        help="no run writes there: remove files that killed ones left half-written",
    )
    add_refining(parser)
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Erase what is taken down; print the certificate, or what is left and why, with the code of ContractError.

    A dry run has that code, too, where something could not be erased.
    """
    root, overrides = absolute(options.root), overrides_of(options)
    check_overrides(overrides, gates_of_takedown())
    require_takedowns(root)
    taken = taken_down(root)
    if taken.is_empty:
        message = f"{root}: nothing is taken down; name what to forget with `refinery takedown` first"
        raise RecipeError(message)
    using = _using(root)
    if options.dry_run:
        found = survey(root, Documents(taken))
        found.left |= _hindered(root)
        facts: dict[str, Any] = {
            **planned(found.work),
            "datasets": [_name(version) for version in using],
            "left": found.left,
        }
        facts["work"] = [[each.path, each.action, each.rows, each.bytes] for each in found.work]
        print_result(options, facts, [*_plan_lines(found, using), *_left_lines(found)])
        return ContractError.exit_code if found.left else 0
    republished = [republish(root, version, options.engine or LOCAL, overrides) for version in using]
    followed = [*follow(root)]
    before = len(erasures(root))
    found, log = _erased(root, options.by or whoami(), alone=options.alone)
    path, certificate = "", {"left": found.left}
    if not found.left:
        path, certificate = certify(found, log, options.by or whoami())
    lines = [
        *map(republished_line, republished),
        *followed,
        *(
            _done_lines(found, path, certificate)
            if any(entry.objects for entry in erasures(root)[before:])
            else _nothing_lines(found, path)
        ),
        *_left_lines(found),
    ]
    print_result(options, certificate, lines)
    return ContractError.exit_code if found.left else 0


def _using(root: str) -> list[Version]:
    """Return the current datasets that use what is taken down."""
    taken = taken_down(root)
    return [version for version in current_versions(root) if any(uses(root, [version], taken))]


def _erased(root: str, by: str, *, alone: bool) -> tuple[Survey, list[Takedown]]:
    """Erase until a look at the root finds nothing; return that look, and the takedowns that it looked for.

    Nothing is erased while something cannot be: a copy is found by what the tables say, and only as long as they do.
    ErasedMeanwhile if another erasure is at work each time: what it replaces meanwhile is in no look.
    """
    unfinished: list[str] = []
    for left in reversed(range(ROUNDS)):
        try:
            found, log = _look(root, by, alone=alone)
            found.unfinished = unfinished = [*unfinished, *found.unfinished]
            if found.left or not found.work:
                return found, log
            erase(found, log[-1].number, by)
        except ErasedMeanwhile:
            if not left:
                raise
    for work in found.work:
        found.left.setdefault(work.path, "it has a document again: a run writes it; wait for its end")
    return found, log


def _look(root: str, by: str, *, alone: bool) -> tuple[Survey, list[Takedown]]:
    """Look at a root for all that is taken down now, behind a fence; return what was found, and the takedowns."""
    log = takedowns(root)
    fence(root, log[-1].number, by)
    since = newest(root)
    try:
        finish(root)
        found = survey(root, Documents(held_behind(root, log)), alone=alone)
    except FileNotFoundError as error:
        raise meanwhile(root) from error
    if newest(root) != since:
        raise meanwhile(root)
    found.left |= _hindered(root)
    return found, log


def _hindered(root: str) -> dict[str, str]:
    """Return why what follows the root, as a store of vectors, cannot be brought in line with it here, by name."""
    return {each.folder or each.name: why for each in followers() if (why := each.hindered(root))}


def _name(version: Version) -> str:
    return f"{version.recipe} version {version.number}"


def _plan_lines(found: Survey, using: Sequence[Version]) -> Iterator[str]:
    for version in using:
        yield f"{_name(version)} uses what is taken down: it would be published again without it"
    for work in found.work:
        yield f"{work.action:<8} {work.bytes:>14,} bytes  {counted(work.rows, 'row'):>12}  {work.path}"
    cost = planned(found.work)
    yield (
        f"{counted(cost['objects'], 'object')} of {found.objects:,}: {cost['rewritten_bytes']:,} bytes to write again, "
        f"{cost['removed_bytes']:,} to remove; nothing is changed: --dry-run"
    )


def _done_lines(found: Survey, path: str, facts: dict[str, Any]) -> Iterator[str]:
    if path:
        count = facts["counts"]
        yield (
            f"{counted(count['rewritten'], 'object')} rewritten and {count['removed']:,} removed: "
            f"{counted(count['rows'], 'row')} and {counted(count['tokens'], 'token')} erased; {found.objects:,} "
            "objects were looked at"
        )
        if others := facts["same_text_elsewhere"]:
            yield f"the same text is at other addresses: take down --document {' --document '.join(others)} as well"
        yield f"the certificate is {found.root}/{path}; it lists what is outside the root"


def _nothing_lines(found: Survey, path: str) -> Iterator[str]:
    if path:
        yield f"nothing to do: no object has anything that is taken down; {found.objects:,} were looked at"
        yield f"the certificate is {found.root}/{path}"


def _left_lines(found: Survey) -> Iterator[str]:
    for path, reason in sorted(found.left.items()):
        yield f"NOT ERASED {path}: {reason}"
    if found.left:
        yield "nothing is erased before these can be: then run `refinery erase` again"
