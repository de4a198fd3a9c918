"""Shows a person five documents, four of one group, and asks which is foreign: how much a grouping has in common.

After Chang et al., Reading tea leaves (NIPS 2009), who asked so for words of topics. Modules: `groups` names groups by
stored columns, `drawing` draws, `answers` stores. The room reads versions, and writes answers alone.
"""

import argparse
import getpass
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pipeline_tasks.inspect.command import add_snapshot, number, print_result, version_of
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.publish.logs.version_log import Version
from refinery_study.intruder.answers import Found, IntruderAnswer, answers, found, save
from refinery_study.intruder.drawing import CHANCE, SHOWN, Draw, draw, population, schema_of
from refinery_study.intruder.groups import Grouping, grouping
from refinery_study.read import agreement_lines
from refinery_study.read.sample import Sampled, read_drawn
from refinery_study.read.shares import Share, in_short

CHARACTERS = 700
"""Characters of a text that are shown."""

KEYS = f"1 to {SHOWN} the foreign one   s skip   q stop"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root and the snapshot, the grouping, how many draws, and who reads."""
    add_snapshot(parser)
    parser.add_argument(
        "--by",
        default="score",
        metavar="COLUMN[/BANDS]",
        help="what groups documents: the values of a column, or bands of a number, five of a fraction (score)",
    )
    parser.add_argument("--group", default="", metavar="NAME", help="draw the four from this group alone")
    parser.add_argument("--seed", type=number(int, 0), default=1, metavar="N", help="the first draw's seed (1)")
    parser.add_argument("--draws", type=number(int, 1), default=20, metavar="N", help="draws that are asked (20)")
    parser.add_argument(
        "--who",
        "--reader",
        dest="reader",
        default="",
        metavar="NAME",
        help="who reads (default: the user of this machine)",
    )
    parser.add_argument("--summary", action="store_true", help="ask nothing; print what was answered so far")


def answer(options: argparse.Namespace) -> int:
    """Ask which document is foreign, but for draws that the reader has answered; then print the shares."""
    version = version_of(options)
    grouped = grouping(options.by, schema_of(options.root, version))
    if not options.summary:
        _ask(options, version, grouped)
    given = found(answers(options.root, version.recipe, grouped.name))
    print_result(options, {"by": grouped.name, **found_facts(given)}, found_lines(given))
    return 0


def _ask(options: argparse.Namespace, version: Version, grouped: Grouping) -> None:
    documents = population(options.root, version, grouped)
    reader = options.reader or getpass.getuser()
    own = [each for each in answers(options.root, version.recipe, grouped.name) if each.reader == reader]
    known = {each.ids for each in own}
    for seed in range(options.seed, options.seed + options.draws):
        drawn = draw(documents, seed, options.group)
        if drawn.ids in known:
            continue
        looked(options, len(drawn.documents), drawn.ids, version)
        _say(_shown(drawn, read_drawn(options.root, version, drawn.documents)))
        chosen = _chosen()
        if chosen is None:
            return
        if chosen:
            given = save(options.root, version, grouped.name, drawn, drawn.ids[chosen - 1], reader)
            _say([outcome_line(given)])


def _shown(drawn: Draw, documents: Sequence[Sampled]) -> Iterator[str]:
    yield f"=== draw {drawn.seed}  {drawn.language}"
    for place, document in enumerate(documents, 1):
        yield from ("", f"--- {place}  {document.title}".rstrip(), "", document.text[:CHARACTERS])
    yield ""


def _say(lines: Iterator[str] | Sequence[str]) -> None:
    """Print to stderr: the result of the command on stdout may be read by a program."""
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.stderr.flush()


def _chosen() -> int | None:
    """Return the number that is typed, 0 if the draw is skipped, None if the reader stops."""
    while True:
        _say([KEYS])
        line = sys.stdin.readline()
        key = line.strip()
        if not line or key == "q":
            return None
        if key == "s":
            return 0
        if key.isdecimal() and 1 <= int(key) <= SHOWN:
            return int(key)


def outcome_line(given: IntruderAnswer) -> str:
    """Return in one line whether an answer is right, and of which groups the documents are."""
    place = given.ids.index(given.foreign) + 1
    right = "right" if given.is_right else "wrong"
    return f"{right}: {place} is of {given.other}, the others are of {given.group} ({given.by})"


# --- Output -----------------------------------------------------------------------------------------------------------


def found_facts(given: Found) -> dict[str, Any]:
    """Return how often the foreign document was found, for a program."""
    parts = {kind: [_facts(share) for share in getattr(given, kind)] for kind in ("groups", "readers")}
    return {"chance": CHANCE, "whole": _facts(given.whole), **parts, "agreement": asdict(given.agreement)}


def _facts(share: Share) -> dict[str, Any]:
    low, high = share.interval
    known = asdict(share)
    return {"name": known["name"], "draws": share.judged, "right": share.good, "low": low, "high": high}


def found_lines(given: Found) -> Iterator[str]:
    """Yield how often the foreign document was found, for a person."""
    if not given.whole.judged:
        yield "nobody has looked for a foreign document here yet"
        return
    yield f"{'':<34}draws  right   share (95 %), by chance {CHANCE:.0%}"
    yield _line(given.whole)
    for kind, shares in (("four of", given.groups), ("readers", given.readers)):
        yield kind
        yield from (f"  {_line(share, 30)}" for share in shares)
    yield from agreement_lines(given.agreement, "draws", "answered")


def _line(share: Share, width: int = 32) -> str:
    low, high = share.interval
    counts = f"{share.name:<{width}}{share.judged:>7,} {in_short(share.good):>6}"
    return f"{counts}   {share.good / share.judged:.0%} ({low:.0%} to {high:.0%})"
