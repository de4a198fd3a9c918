"""The `refinery` command: refine a snapshot, inspect what is published, and keep a root in order."""

import argparse
import itertools
import os
import shlex
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from pipeline_tasks.ask.known import Entry, entry_of, name_in, questions
from pipeline_tasks.cli.listing import first_words, listing, member_listing, members, nearest, top
from pipeline_tasks.cli.supervisor import INTERRUPTED, supervised
from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.nearest import near
from pipeline_tasks.nearest import nearest as nearest_of

OURS = ("pipeline_tasks", "refinery_")
"""How the names of our modules begin."""


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
    given = [*(sys.argv[1:] if arguments is None else arguments)]
    try:
        return _reported(partial(_begin, given, supervises=arguments is None), given)
    except KeyboardInterrupt:
        sys.stderr.write("refinery: stopped\n")
        return INTERRUPTED


def _begin(given: Sequence[str], *, supervises: bool) -> int:
    arguments = _joined(given)
    if supervises and _is_supervised(arguments):
        return supervised(partial(_reported, partial(_run, arguments), arguments))
    return _run(arguments)


def _joined(given: Sequence[str]) -> list[str]:
    """Return arguments with the words that name the command as one; say on stderr which name replaces an old one."""
    at = given.index(_command(given)) if _command(given) else len(given)
    words = [*itertools.takewhile(lambda word: not word.startswith("-"), given[at : at + 2])]
    name, count = name_in(words)
    if not name and words and words[0] in first_words(questions()):
        return [*given[:at], " ".join(words), *given[at + len(words) :]]
    if (called := " ".join(given[at : at + count])) != name:
        sys.stderr.write(f"refinery: `refinery {called}` is `refinery {name}` now\n")
    return [*given[:at], *([name] if name else []), *given[at + count :]]


def _reported(work: Callable[[], int], arguments: Sequence[str]) -> int:
    try:
        return work()
    except RefineryError as error:
        if "--debug" in arguments:
            raise
        sys.stderr.write(f"refinery: {error}\n")
        return error.exit_code
    except ModuleNotFoundError as error:
        if "--debug" in arguments or error.name is None or error.name.startswith(OURS):
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
    command = _command(arguments)
    if command and entry_of(command) is None:
        listed = _members(command)
        if {*arguments} - {command, "-h", "--help", "--debug"}:
            message = f"`refinery {command}` is several commands: name one next, before its options\n{listed}"
            raise RecipeError(message)
        sys.stdout.write(f"{listed}\n")
        return 0
    options = _parse(parser := parser_of(command), arguments)
    if options.version:
        from pipeline_tasks.libraries import release

        sys.stdout.write(f"refinery {release()}\n")
        return 0
    if options.command is None:
        parser.print_help()
        return 0
    _require_named(parser, options)
    _check_root(options)
    entry = entry_of(options.command)
    assert entry is not None
    try:
        return _module(entry).answer(options)
    except RecipeError as error:
        raise _with_absent_parts(error, str(getattr(options, "root", "") or "")) from error


def _with_absent_parts(error: RecipeError, root: str) -> RecipeError:
    """Return a refusal with the packages that the root of a command was refined with and that are not here."""
    from pipeline_tasks.inspect.absent_parts import absent_parts

    account = absent_parts(root, str(error))
    return type(error)(f"{error}{account}") if account else error


def _command(arguments: Sequence[str]) -> str:
    return next((word for word in arguments if not word.startswith("-")), "")


def _members(name: str) -> str:
    """Return what may follow the first word of commands; RecipeError for any other name, with the nearest."""
    known = questions()
    word, _, second = name.partition(" ")
    if not second and word in first_words(known):
        return member_listing(known, word)
    meant = nearest(known, name[:40])
    suggestion = f" (did you mean {meant!r}?)" if meant else ""
    commands = (
        f"commands of {word} are: {', '.join(members(known, word))}"
        if second
        else f"commands are: {', '.join(top(known))}"
    )
    message = f"there is no command {name[:40]!r}{suggestion}; {commands}"
    raise RecipeError(message)


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command, or of `--help` without one: a command does not wait for what others have."""
    return build_parser({name: entry}, {name}) if name and (entry := entry_of(name)) else build_parser(questions(), ())


def _check_root(options: argparse.Namespace) -> None:
    """Raise RecipeError if the command reads a root, and there is none at ROOT."""
    if getattr(options, "requires_root", False):
        from pipeline_tasks.store.storage import require_root

        require_root(options.root)


def _require_named(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Raise RecipeError if a lone root stands where a command takes what it asks about, as a page or a snapshot."""
    if not _has_default_root(options):
        return
    [command] = _parsers(parser)
    for action in actions_of(command):
        given = str(getattr(options, action.dest, ""))
        if not action.option_strings and action.nargs is None and _has_published(given):
            word = str(action.metavar or action.dest).upper()
            message = (
                f"{given} is a root; name {word} before it, {action.help}: `{command.prog} {word} {shlex.quote(given)}`"
            )
            raise RecipeError(message)


def _has_published(place: str) -> bool:
    with suppress(RefineryError, OSError, ValueError):  # words that no path can be, or a folder that nobody may read
        if is_bucket(place) or Path(place).is_dir():
            from pipeline_tasks.publish.logs import version_log

            return bool(version_log.recipes(place))
    return False


def build_parser(entries: Mapping[str, Entry], names: Container[str]) -> argparse.ArgumentParser:
    """Return a parser of commands; only those in `names` are imported and get their arguments."""
    usage = "refinery [-h] [--debug] [--version] COMMAND ..."
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser("refinery", usage, __doc__, listing(entries), formatter_class=raw)
    parser.add_argument("--debug", action="store_true", help="show the stack trace of an error")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(prog="refinery", dest="command", help=argparse.SUPPRESS)
    for name, entry in entries.items():
        arguments = commands.add_parser(name, description=entry.help)
        if name not in names:
            continue
        _module(entry).add_arguments(arguments)
        if entry.shows:
            from pipeline_tasks.inspect.looks import add_purpose

            add_purpose(arguments)
        _hide_old_spellings(arguments)
    return parser


def actions_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments and options of a parser."""
    return parser._actions  # noqa: SLF001 -- argparse has no public name for it


def _hide_old_spellings(parser: argparse.ArgumentParser) -> None:
    """Show the first spelling of each option alone; the others are those that it had, to which it still answers."""
    for action in actions_of(parser):
        if action.dest != "help":
            action.option_strings = action.option_strings[:1]


def _module(entry: Entry) -> Command:
    """Return the command of an entry; RecipeError names a module of somebody else that is none."""
    try:
        return _command_of(entry)
    except Exception as error:  # whatever the module of somebody else raises, or lacks
        if entry.module.startswith(OURS):
            raise
        message = f"{entry.module} is no command: {type(error).__name__}: {error}; repair or uninstall its package"
        raise RecipeError(message) from error


def _command_of(entry: Entry) -> Command:
    if entry.is_question:
        from pipeline_tasks.cli.asking import AskedCommand

        return AskedCommand(entry)
    module = import_module(entry.module)
    if not callable(getattr(module, "answer", None)) or not callable(getattr(module, "add_arguments", None)):
        message = "it has no `add_arguments` and `answer`"
        raise RecipeError(message)
    return cast("Command", module)


class _Parser(argparse.ArgumentParser):
    """A parser that tells which of the words was meant that an option takes."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            meant = nearest_of(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}{meant}") from None


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
        known = _parsers(parser)
        called = known[0] if len(known) == 1 else parser
        called.error(f"unrecognized arguments: {' '.join(rest)}{_meant(parser, rest)}")
    return options


def _meant(parser: argparse.ArgumentParser, rest: Sequence[str]) -> str:
    """Return which option of the command is most like the first one that it does not have, "" for none."""
    known = [name for each in _parsers(parser) for action in actions_of(each) for name in action.option_strings]
    wanted = next((word.partition("=")[0] for word in rest if word.startswith("-")), "")
    meant = near(wanted, known, least=0.6) if wanted else []
    return f" (did you mean {meant[0]}?)" if meant else ""


def _parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return the parsers of the commands of one."""
    choices = (action.choices for action in actions_of(parser))
    return [each for commands in choices if isinstance(commands, Mapping) for each in commands.values()]


def _has_default_root(options: argparse.Namespace) -> bool:
    from pipeline_tasks.inspect.command import default_root

    return getattr(options, "root", None) == default_root()
