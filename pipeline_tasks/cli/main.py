"""The `refinery` command: refine a snapshot, inspect what is published, and keep a root in order."""

import argparse
import os
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Protocol, cast

from pipeline_tasks.ask.known import Entry, entry_of, questions
from pipeline_tasks.cli.supervisor import INTERRUPTED, supervised
from pipeline_tasks.errors import RecipeError, RefineryError


class Command(Protocol):
    """What a command's module offers. It is imported only when its command runs, so `--help` stays fast."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments."""

    def answer(self, options: argparse.Namespace) -> int:
        """Run the command and print its result; return the exit code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; an error is one paragraph on stderr, and the exit code is its class.

    Without `arguments` it is the command of this process, and supervised if it starts processes.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if arguments is None and _is_supervised(given):
        return _reported(partial(supervised, partial(_reported, partial(_run, given), given)), given)
    try:
        return _reported(partial(_run, given), given)
    except KeyboardInterrupt:
        sys.stderr.write("refinery: stopped\n")
        return INTERRUPTED


def _reported(work: Callable[[], int], arguments: Sequence[str]) -> int:
    try:
        return work()
    except RefineryError as error:
        if "--debug" in arguments:
            raise
        sys.stderr.write(f"refinery: {error}\n")
        return error.exit_code
    except ModuleNotFoundError as error:
        if "--debug" in arguments or error.name is None or error.name.startswith(("pipeline_tasks", "refinery_")):
            raise
        from pipeline_tasks.libraries import way_to

        sys.stderr.write(f"refinery: {way_to(error.name)}\n")
        return RecipeError.exit_code
    except BrokenPipeError:  # `refinery status | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # the machine's own failures come as errors of any library
        from pipeline_tasks.run.machine import named

        refusal = named(error)
        if refusal is None or "--debug" in arguments:
            raise
        sys.stderr.write(f"refinery: {refusal}\n")
        return refusal.exit_code


def _is_supervised(arguments: Sequence[str]) -> bool:
    entry = entry_of(_command(arguments))
    return entry is not None and entry.supervised and not {"-h", "--help"} & set(arguments)


def _run(arguments: Sequence[str]) -> int:
    options = _parse(parser := parser_of(_command(arguments)), arguments)
    if options.version:
        from pipeline_tasks.libraries import release

        sys.stdout.write(f"refinery {release()}\n")
        return 0
    if options.command is None:
        parser.print_help()
        return 0
    _check_root(options)
    entry = entry_of(options.command)
    assert entry is not None
    return _module(entry).answer(options)


def _command(arguments: Sequence[str]) -> str:
    return next((word for word in arguments if not word.startswith("-")), "")


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command, or of `--help` without one: a command does not wait for what others have.

    RecipeError for a name that is none, with the nearest.
    """
    if entry := entry_of(name) if name else None:
        return build_parser({name: entry}, {name})
    if name:
        near = get_close_matches(name[:40], questions(), n=1, cutoff=0.6)
        suggestion = f" (did you mean {near[0]!r}?)" if near else ""
        message = f"there is no command {name[:40]!r}{suggestion}; commands are: {', '.join(questions())}"
        raise RecipeError(message)
    return build_parser(questions(), ())


def _check_root(options: argparse.Namespace) -> None:
    """Raise RecipeError if the command reads a root, and there is none at ROOT."""
    if getattr(options, "requires_root", False):
        from pipeline_tasks.store.storage import require_root

        require_root(options.root)


def build_parser(entries: Mapping[str, Entry], names: Container[str]) -> argparse.ArgumentParser:
    """Return a parser of commands; only those in `names` are imported and get their arguments."""
    parser = argparse.ArgumentParser(prog="refinery", description=__doc__)
    parser.add_argument("--debug", action="store_true", help="show the stack trace of an error")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="", dest="command")
    for name, entry in entries.items():
        arguments = commands.add_parser(name, help=entry.help, description=entry.help)
        if name not in names:
            continue
        _module(entry).add_arguments(arguments)
        if entry.shows:
            from pipeline_tasks.inspect.looks import add_purpose

            add_purpose(arguments)
    return parser


def _module(entry: Entry) -> Command:
    return cast("Command", import_module(entry.module))


def _parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse; ROOT, or a query behind it, may follow options, as in `retract DAY --dry-run ROOT`.

    argparse gives an optional positional its default as soon as the one before it is read, and ignores it later.
    """
    options, rest = parser.parse_known_args(arguments)
    if len(rest) == 1 and not rest[0].startswith("-") and _has_default_root(options):
        options.root = rest.pop()
    if len(rest) == 1 and not rest[0].startswith("-") and getattr(options, "query", None) == "":
        options.query = rest.pop()
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def _has_default_root(options: argparse.Namespace) -> bool:
    from pipeline_tasks.inspect.command import default_root

    return getattr(options, "root", None) == default_root()
