"""`refinery` lists its commands without importing them, parses ROOT anywhere, and prints errors in one paragraph."""

import argparse
import json
import re
import subprocess
import sys
from importlib import import_module
from itertools import takewhile
from pathlib import Path

import pytest

from pipeline_tasks.ask.known import GROUPS, questions
from pipeline_tasks.cli import main as cli
from pipeline_tasks.cli.listing import first_words, members, top
from pipeline_tasks.cli.main import main, parser_of
from pipeline_tasks.errors import RecipeError

READERS = {
    "status": [],
    "look versions": [],
    "diff": ["1", "2"],
    "look funnel": [],
    "look types": [],
    "look cut": [],
    "look report": [],
    "verify": [],
    "keep upgrade": [],
    "keep access": [],
    "look trace": ["--token", "0"],
    "look lineage": [],
    "look find": ["--document", "0" * 32],
    "why": ["example.org"],
    "search": ["a phrase"],
    "sql": [],
    "document": ["0" * 32],
    "export": ["--format", "parquet", "--to", "exported"],
    "register": ["--catalog", "ducklake:sqlite:lake.sqlite"],
    "annotations": ["--to", "annotated"],
    "takedown": ["--document", "0" * 32, "--reason", "why"],
    "erase": [],
    "keep sign": ["--key", "key.pem"],
    "disclose": ["--to", "disclosed"],
    "plan": ["--target-tokens", "1e9", "--days", "1", "--gpus", "1", "--version", "1"],
    "read": ["--summary"],
    "look intruder": ["--summary"],
    "rejects": [],
    "look redactions": [],
    "look duplicates": ["0" * 32],
    "look contamination": [],
    "whatif": [],
    "retract": ["day"],
    "keep vacuum": ["--apply"],
    "keep retention": [],
    "keep compact": [],
    "keep ledger": [],
    "look breakdown": ["--by", "language"],
    "look similar": ["--url", "https://example.org/"],
    "keep index": [],
    "look map": [],
    "model cost": ["--recipe", "web"],
}
"""Commands that take what a run wrote to, each with the arguments that it needs."""

MOST_WORDS = 30
"""Words that a command line may begin with at most: a list that is read in one look."""

MAKING = {"run", "build", "setup doctor"}
"""Commands that make a root, or check one before the first run."""

RENAMED = {
    *(("--to", old) for old in ("--output", "--out", "--folder", "--plots")),
    *(("--document", old) for old in ("--doc", "--id")),
    *(("--who", old) for old in ("--by", "--reader")),
    ("--dataset", "--recipe"),
    ("--root", "--record"),
    ("--dry-run", "--plan"),
    ("--apply", "--delete"),
    ("--version", "--from"),
    ("--from", "--source"),
    ("--language", "--lang"),
    ("--core-hour-price", "--core-hour"),
}
"""Options as help shows them, and spellings that they had and still answer to."""

OTHER_IDEAS = {"--recipe": "a recipe", "--by": "a column", "--from": "where something is got from"}
"""Old spellings of some options that are right for others."""

HEAVY = ("pyarrow", "numpy", "airflow", "pyspark", "ray")


@pytest.mark.parametrize("name", questions())
def test_a_command_is_a_module_with_arguments_and_an_answer(name: str) -> None:
    command = import_module(questions()[name].module)
    assert callable(command.QUESTION.answer if questions()[name].is_question else command.answer)
    assert f"usage: refinery {name}" in _help(name)


def _help(name: str) -> str:
    parser = parser_of(name)
    (commands,) = (action.choices for action in parser._actions if action.dest == "command")
    return str(commands[name].format_help())  # type: ignore[call-overload, index]


@pytest.mark.parametrize("arguments", [["--help"], []])
def test_help_lists_every_command_and_imports_no_heavy_library(arguments: list[str]) -> None:
    program = f"""
import json, sys
from pipeline_tasks.cli.main import main
try:
    main({arguments})
finally:
    print(json.dumps([name for name in {HEAVY} if name in sys.modules]))
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    *lines, imported = process.stdout.splitlines()
    assert json.loads(imported) == []
    said = " ".join(" ".join(lines).replace(",", " ").split())
    assert [group for group in GROUPS if f" {group}: " not in said] == []
    assert [name for name in questions() if f" {name.rpartition(' ')[2]} " not in f"{said} "] == []


def test_a_command_line_may_begin_with_few_words() -> None:
    """`why` is one of them, wherever it is built."""
    assert len({*top(questions()), "why"}) <= MOST_WORDS


def test_commands_that_share_a_first_word_are_of_one_group_and_none_is_that_word() -> None:
    for word in first_words(questions()):
        assert word not in questions()
        assert len({entry.group for entry in members(questions(), word).values()}) == 1, word


@pytest.mark.parametrize("word", first_words(questions()))
@pytest.mark.parametrize("more", [[], ["--help"]])
def test_a_first_word_lists_what_may_follow_it(word: str, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word, *more]) == 0
    listed = re.findall(r"^ {4}(\S+)", capsys.readouterr().out, re.MULTILINE)
    assert listed == sorted(name.removeprefix(f"{word} ") for name in questions() if name.startswith(f"{word} "))


@pytest.mark.parametrize("name", [name for name, entry in questions().items() if entry.was])
def test_an_old_name_answers_with_the_new_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    was = questions()[name].was
    with pytest.raises(SystemExit, match="0"):
        main([*was.split(), "--help"])
    old = capsys.readouterr()
    with pytest.raises(SystemExit, match="0"):
        main([*name.split(), "--help"])
    assert old == (capsys.readouterr().out, f"refinery: `refinery {was}` is `refinery {name}` now\n")
    assert old.out.startswith(f"usage: refinery {name} ")


def test_an_old_name_takes_the_arguments_that_it_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = "compact", "keep compact"
    assert main(["--debug", old, str(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == {}
    assert said.err == f"refinery: `refinery {old}` is `refinery {new}` now\n"


def test_no_old_name_is_the_name_of_another_command() -> None:
    olds = [entry.was for entry in questions().values() if entry.was]
    assert len({*olds, *questions(), *first_words(questions())}) == sum(
        map(len, (olds, questions(), first_words(questions())))
    )


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("refinery 0.")


@pytest.mark.parametrize(
    "arguments",
    [["retract", "day", "root"], ["retract", "day", "--dry-run", "root"], ["retract", "--dry-run", "day", "root"]],
)
def test_the_root_may_follow_options(arguments: list[str]) -> None:
    options = cli._parse(parser_of("retract"), arguments)
    assert (options.snapshot, options.root) == ("day", "root")


@pytest.mark.parametrize(
    "arguments", [["status", "root", "more"], ["look", "funnel", "--none"], ["lint", "web", "root"]]
)
def test_unknown_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert arguments[-1] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["frobnicate"], ""),
        (["statsu"], " (did you mean 'status'?)"),
        (["vacum"], " (did you mean 'keep vacuum'?)"),
        (["train-extracter"], " (did you mean 'model extractor'?)"),
        (["--debug", "x" * 9_000], ""),
    ],
)
def test_a_command_that_does_not_exist_is_answered_with_those_that_do(
    arguments: list[str], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--debug" in arguments:
        with pytest.raises(RecipeError):
            main(arguments)
        return
    assert main(arguments) == RecipeError.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"refinery: there is no command {arguments[-1]!r}{near}; commands are: {', '.join(top(questions()))}"


def test_an_unknown_second_word_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keep", "vacum", "root"]) == RecipeError.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "refinery: there is no command 'keep vacum' (did you mean 'keep vacuum'?); commands of keep are: "
    )


def test_options_before_the_second_word_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """`refinery keep --apply vacuum ROOT` printed a list, did nothing, and was a success."""
    assert main(["keep", "--apply", "vacuum", "root"]) == RecipeError.exit_code
    assert "name one next, before its options" in capsys.readouterr().err
    assert main(["keep"]) == 0


def test_an_error_is_one_paragraph_and_its_exit_code(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["look", "funnel", str(tmp_path)]
    assert main(arguments) == RecipeError.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"refinery: {tmp_path}: ")
    with pytest.raises(RecipeError):
        main(["--debug", *arguments])


def test_an_override_needs_a_stage_and_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    for override in ("extract", "=why", "extract= "):
        assert main(["run", "--input", "nowhere", "--override", override]) == RecipeError.exit_code
        assert "write GATE=WHY" in capsys.readouterr().err


def test_every_command_that_takes_a_root_is_known_here() -> None:
    rooted = {name for name in questions() if "[ROOT]" in _help(name)}
    assert rooted - MAKING == READERS.keys(), "add it to READERS"


@pytest.mark.parametrize("name", READERS)
def test_a_wrong_root_is_named_and_nothing_is_created(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text("not a root")
    for root, words in (("nowhere", "does not exist; name the root"), ("README.md", "is a file, not a root")):
        place = str(tmp_path / root)
        named = list(takewhile(lambda word: not word.startswith("-"), READERS[name]))
        assert main([*name.split(), *named, place, *READERS[name][len(named) :]]) == RecipeError.exit_code
        assert f"{place} {words}" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["README.md"]


def test_a_run_into_a_file_is_refused_before_it_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("not a root")
    assert main(["run", str(tmp_path / "README.md"), "--input", str(tmp_path)]) == RecipeError.exit_code
    assert "README.md is a file, not a root" in capsys.readouterr().err


def options() -> list[tuple[str, argparse.Action, list[str]]]:
    """Every option that a command shows: the command, the option, and the spellings that are not shown."""
    found = []
    for name in questions():
        (commands,) = (action.choices for action in parser_of(name)._actions if action.dest == "command")
        known = commands[name]._option_string_actions  # type: ignore[call-overload, index]
        for action in {id(action): action for action in known.values()}.values():
            if action.help != argparse.SUPPRESS and action.dest != "help":
                spelled = [option for option, of in known.items() if of is action]
                found.append((name, action, [option for option in spelled if option not in action.option_strings]))
    return found


def test_an_idea_has_one_spelling_and_answers_to_those_that_it_had() -> None:
    known = options()
    assert {(action.option_strings[0], old) for _, action, olds in known for old in olds} == RENAMED
    assert {len(action.option_strings) for _, action, _ in known} == {1}
    shown = {action.option_strings[0] for _, action, _ in known}
    assert shown & {old for _, old in RENAMED} == OTHER_IDEAS.keys()


def test_a_setting_is_spelled_alike_by_every_command() -> None:
    """Settings that two commands have by one name, and values that are of one kind."""
    by_name: dict[str, set[str]] = {}
    for _, action, _ in options():
        by_name.setdefault(action.dest, set()).add(action.option_strings[0])
        by_name.setdefault(str(action.metavar), set()).add(action.option_strings[0])
    two = {name: spelled for name, spelled in by_name.items() if len(spelled) > 1 and name.islower()}
    assert two == {"recipe": {"--recipe", "--dataset"}, "by": {"--by", "--who"}}
    assert (by_name["ROOT"], by_name["NAME[@NUMBER]"], by_name["CODE"]) == ({"--root"}, {"--dataset"}, {"--language"})


def test_a_root_that_is_written_to_is_named_by_its_place_or_as_it_was() -> None:
    for words in (["ROOT"], ["--output", "ROOT"], ["--output=ROOT"]):
        for name, more in (("run", ["--input", "crawl"]), ("build", ["--dry-run"])):
            for arguments in ([*words, *more], [*more, *words]):
                assert cli._parse(parser_of(name), [name, *arguments]).root == "ROOT", arguments
