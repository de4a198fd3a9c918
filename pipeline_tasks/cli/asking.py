"""Asks a question on the command line: its params are arguments, its answer is lines or JSON."""

import argparse
from collections.abc import Callable
from typing import Any

from pipeline_tasks.ask.known import Entry
from pipeline_tasks.ask.lines import lines_of
from pipeline_tasks.ask.question import ROOT, Param, Role, params_of, question_of, read_params
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_json, add_root, print_result
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.store.storage import require_root


class AskedCommand:
    """The command of a question: who runs it reads the root anyway, as a steward does."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._question = question_of(entry)
        self._params = list(params_of(self._question))

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add what has to be named, the root, and options."""
        for param in self._params:
            if param.is_required:
                parser.add_argument(param.name, metavar=param.word, type=_reader(param), help=param.help)
        add_root(parser)
        parser.set_defaults(requires_root=False)  # `answer` requires it, where it stands
        for param in self._params:
            if not param.is_required:
                earlier = self._question.was.get(param.name, ())
                parser.add_argument(param.flag, *earlier, dest=param.name, **_option(param))
        add_json(parser)

    def answer(self, options: argparse.Namespace) -> int:
        """Print the answer; return its exit code."""
        self._find_root(options)
        given = {param.name: getattr(options, param.name) for param in self._params}
        params = read_params(self._question, given, getattr(options, ROOT), Role.STEWARD)
        answer = self._question.answer(params)
        if self._entry.shows:
            looked(options, answer.rows, answer.documents, answer.of)
        print_result(options, answer.json, lines_of(answer.parts))
        return answer.exit_code

    def _find_root(self, options: argparse.Namespace) -> None:
        """Require the root, which may stand before what is named."""
        try:
            require_root(options.root)
        except RecipeError:
            name = next((param.name for param in self._params if param.is_required), ROOT)
            named = getattr(options, name)
            if not _is_root(named):
                raise
            setattr(options, name, options.root)
            options.root = named


def _is_root(named: object) -> bool:
    try:
        require_root(str(named))
    except RecipeError:
        return False
    return True


def _option(param: Param) -> dict[str, Any]:
    """Return what argparse takes for an option."""
    if param.kind is bool:
        return {"action": "store_true", "help": param.help}
    known: dict[str, Any] = {"type": _reader(param), "help": param.help, "metavar": param.word}
    if param.choices:
        known = {"choices": param.choices, "help": param.help}
    return {**known, "action": "append", "default": []} if param.is_repeated else {**known, "default": param.default}


def _reader(param: Param) -> Callable[[str], object]:
    def read(text: str) -> object:
        try:
            return param.read(text)
        except RecipeError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read
