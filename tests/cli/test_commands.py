"""`refinery` lists its commands without importing them, parses ROOT anywhere, and prints errors in one paragraph."""

import json
import subprocess
import sys
from importlib import import_module
from itertools import takewhile
from pathlib import Path

import pytest

from pipeline_tasks.ask.known import questions
from pipeline_tasks.cli import main as cli
from pipeline_tasks.cli.main import main, parser_of
from pipeline_tasks.errors import RecipeError

READERS = {
    "status": [],
    "versions": [],
    "diff": ["1", "2"],
    "funnel": [],
    "report": [],
    "verify": [],
    "upgrade": [],
    "access": [],
    "trace": ["--token", "0"],
    "lineage": [],
    "find": ["--doc", "0" * 32],
    "why": ["example.org"],
    "search": ["a phrase"],
    "sql": [],
    "document": ["0" * 32],
    "export": ["--format", "parquet", "--to", "exported"],
    "takedown": ["--doc", "0" * 32, "--reason", "why"],
    "erase": [],
    "sign": ["--key", "key.pem"],
    "disclose": ["--out", "disclosed"],
    "plan": ["--target-tokens", "1e9", "--days", "1", "--gpus", "1", "--from", "1"],
    "read": ["--summary"],
    "intruder": ["--summary"],
    "rejects": [],
    "redactions": [],
    "duplicates": ["0" * 32],
    "contamination": [],
    "whatif": [],
    "retract": ["day"],
    "vacuum": ["--delete"],
    "retention": [],
    "compact": [],
    "ledger": ["rebuild"],
    "breakdown": ["--by", "language"],
    "similar": ["--url", "https://example.org/"],
    "index": [],
    "map": [],
}
"""Commands that take what a run wrote to, each with the arguments that it needs."""

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
    assert {line.split()[0] for line in lines if line.startswith("    ")} >= questions().keys()


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


@pytest.mark.parametrize("arguments", [["status", "root", "more"], ["funnel", "--none"], ["lint", "web", "root"]])
def test_unknown_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert arguments[-1] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "near"),
    [(["frobnicate"], ""), (["statsu"], " (did you mean 'status'?)"), (["--debug", "x" * 9_000], "")],
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
    assert line == f"refinery: there is no command {arguments[-1]!r}{near}; commands are: {', '.join(questions())}"


def test_an_error_is_one_paragraph_and_its_exit_code(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["funnel", str(tmp_path)]
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
    assert rooted - {"doctor"} == READERS.keys(), "doctor checks a root before the first run; add any other to READERS"


@pytest.mark.parametrize("name", READERS)
def test_a_wrong_root_is_named_and_nothing_is_created(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text("not a root")
    for root, words in (("nowhere", "does not exist; name the root"), ("README.md", "is a file, not a root")):
        place = str(tmp_path / root)
        named = list(takewhile(lambda word: not word.startswith("-"), READERS[name]))
        assert main([name, *named, place, *READERS[name][len(named) :]]) == RecipeError.exit_code
        assert f"{place} {words}" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["README.md"]


def test_a_run_into_a_file_is_refused_before_it_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("not a root")
    assert main(["run", "--input", str(tmp_path), "--output", str(tmp_path / "README.md")]) == RecipeError.exit_code
    assert "README.md is a file, not a root" in capsys.readouterr().err
