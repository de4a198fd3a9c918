"""Lists who saw texts of a root: the looks of pages, and of commands where the root is shared."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date

from pipeline_tasks.counted import counted
from pipeline_tasks.inspect.command import add_json, add_root, print_result
from pipeline_tasks.store.access_log import Look, looks

_PLAIN = ("recipe", "snapshot", "stage", "path")
"""Names of what is looked at that say themselves what they are of."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, and whose looks of which days."""
    add_root(parser)
    parser.add_argument("--since", type=_day, metavar="DAY", help="looks of this day, in UTC, and later")
    parser.add_argument(
        "--who",
        "--by",
        dest="by",
        default="",
        metavar="NAME",
        help="looks of this user; of a command NAME or NAME@HOST",
    )
    parser.add_argument("--document", default="", metavar="ID", help="looks at this document, by its id")
    add_json(parser)


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        message = f"{text!r} is no day; write it as 2026-11-26"
        raise argparse.ArgumentTypeError(message) from error


def answer(options: argparse.Namespace) -> int:
    """Print the looks in the order of time."""
    chosen = [
        look
        for look in looks(options.root, options.since or "")
        if options.by in ("", look.by, look.by.partition("@")[0])
        and (not options.document or options.document in look.documents)
    ]
    print_result(options, [asdict(look) for look in chosen], look_lines(chosen))
    return 0


def look_lines(chosen: Sequence[Look]) -> Iterator[str]:
    """Yield a line for each look, and how many there are."""
    for look in chosen:
        yield " ".join(filter(None, _parts(look)))
    yield counted(len(chosen), "look") if chosen else "nobody has looked: there is no such entry in the access log"


def _parts(look: Look) -> Iterator[str]:
    yield look.at[:19].replace("T", " ")
    yield f"{look.by:<20}"
    yield f"{look.role or look.through:<8}"
    yield f"{look.what:<12}"
    yield " ".join(value if name in _PLAIN else f"{name} {value}" for name, value in look.of.items())
    yield f"{counted(look.rows, 'row')}"
    yield f"asked {look.asked[:12]}" if look.asked else ""
    yield f'"{look.purpose}"' if look.purpose else ""
