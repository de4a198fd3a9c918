"""Every option that takes the name of a known thing tells which one was meant: all parsers are walked."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_tasks.ask.known import questions
from pipeline_tasks.cli.main import parser_of
from pipeline_tasks.errors import RecipeError
from tests import small_build
from tests.commands import Refinery
from tests.small_root import SmallRoot

NAMES = {
    "--recipe": ("smal", "webb", "corpsu"),
    "--snapshot": ("2026-11-91",),
    "--dataset": ("corpsu",),
    "--stage": ("extrct",),
}
"""Options that take a name, and words that are nearly one: of a root's own recipes, or of those that are shipped."""

WITH = {
    "export": ("--recipe", "small"),
    "plan": ("--input", "3TB"),
    "look find": ("--url", "example.org"),
    "look similar": ("--text", "a word"),
    "takedown": ("--rights",),
}
"""What else a command asks for first."""

VALUES = {"what": "example.org", "id": "0" * 32, "query": "FROM documents", "kind": "stage"}
"""Values of arguments that a command needs."""

ELSEWHERE = {  # where the name is no known one, or is not looked at first
    ("run", "--snapshot"): "a new name is a new snapshot",
    ("lint", "--snapshot"): "of the root that --root names",
    ("keep sign", "--recipe"): "behind the key",
    ("keep sign", "--dataset"): "behind the key",
    ("keep index", "--recipe"): "no version of this root has vectors",
    ("model mixture", "--dataset"): "it is ROOT/NAME@VERSION",
    ("setup doctor", "--recipe"): "behind the looks at the machine",
}

pytestmark = pytest.mark.slow


def parser_named(command: str) -> argparse.ArgumentParser:
    parsers = (action.choices for action in parser_of(command)._actions if isinstance(action.choices, dict))
    parser = next(iter(parsers))[command]
    assert isinstance(parser, argparse.ArgumentParser)
    return parser


def actions() -> Iterator[tuple[str, argparse.Action]]:
    return ((command, action) for command in questions() for action in parser_named(command)._actions)


@pytest.fixture(scope="module")
def root(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> str:
    small = small_build.copied(small_root, tmp_path_factory.mktemp("built"))
    small_build.build(small)
    return small.root


NAMED = sorted(
    {(command, name) for command, action in actions() for name in action.option_strings if name in NAMES}
    - {
        (command, action.option_strings[-1])
        for command, action in actions()
        if action.option_strings and action.choices
    }
)


@pytest.mark.parametrize(("command", "option"), [pair for pair in NAMED if pair not in ELSEWHERE])
def test_a_name_that_is_nearly_right_is_told(
    command: str, option: str, root: str, refinery: Refinery, tmp_path: Path
) -> None:
    words = [*WITH.get(command, ())]
    for action in parser_named(command)._actions:
        if action.required and option not in action.option_strings and action.dest != "root":
            value = next(iter(action.choices)) if action.choices else VALUES.get(action.dest, str(tmp_path))
            words += [*action.option_strings[-1:], str(value)]
    said = []
    for word in NAMES[option]:
        done = refinery(*command.split(), *words, *([] if command == "lint" else [root]), option, word)
        assert done.returncode == RecipeError.exit_code, done
        said.append(done.stdout + done.stderr)
    assert any("did you mean" in each for each in said), said


@pytest.mark.parametrize(
    ("command", "action"), [pair for pair in actions() if pair[1].choices and pair[1].option_strings]
)
def test_a_choice_that_is_nearly_right_is_told(
    command: str, action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, choice = action.choices or ()
    with pytest.raises(SystemExit):
        parser_of(command).parse_args([command, action.option_strings[-1], f"{choice}s"])
    assert f"did you mean '{choice}'?" in capsys.readouterr().err


def test_the_walk_finds_options_of_each_kind() -> None:
    assert {option for _, option in NAMED} == {*NAMES}
    assert {pair for pair in ELSEWHERE if pair not in NAMED} == set()
