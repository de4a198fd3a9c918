"""The page of options: every command of `refinery` with its arguments, by group."""

import argparse
from collections.abc import Iterator

from pipeline_tasks.ask.known import GROUPS, questions
from pipeline_tasks.cli.main import actions_of, build_parser
from pipeline_tasks.cli.reference.markdown import generated_note, table

HEAD = """
[Commands and settings](commands.md) says which command answers which question.
"""


def options_page() -> str:
    """Return the page as Markdown."""
    head = ["# Options of the commands\n", generated_note("the parsers of `pipeline_tasks/cli/`"), HEAD.strip()]
    return "\n".join([*head, *_groups()]) + "\n"


def _groups() -> Iterator[str]:
    known = questions()
    actions = actions_of(build_parser(known, known))
    [parsers] = [action.choices for action in actions if action.dest == "command"]
    assert isinstance(parsers, dict)
    for group in GROUPS:
        yield f"\n## {group.capitalize()}"
        for name, entry in known.items():
            if entry.group == group:
                yield from _section(name, parsers[name])


def _section(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"\n### refinery {name}\n"
    description = parser.description or ""
    yield f"{description[:1].upper()}{description[1:]}.\n"
    shown = [action for action in actions_of(parser) if action.help != argparse.SUPPRESS]
    actions = [action for action in shown if action.dest != "help"]
    yield from table(("argument", "meaning"), ([_argument(action), _meaning(action)] for action in actions))


def _argument(action: argparse.Action) -> str:
    metavar = action.metavar or action.dest.upper()
    value = "" if action.nargs == 0 else " " + ("|".join(map(str, action.choices)) if action.choices else str(metavar))
    return f"`{', '.join(action.option_strings)}{value}`" if action.option_strings else f"`{metavar}`"


def _meaning(action: argparse.Action) -> str:
    said = (action.help or "") % vars(action)  # as argparse fills in `%(default)s`
    return f"required: {said}" if action.required and action.option_strings else said
