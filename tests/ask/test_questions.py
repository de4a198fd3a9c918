"""Questions: each that there is has typed params and a role; params are arguments; an answer is lines, JSON and HTML."""

import argparse
import json
import re
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest

from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.ask.html import MOST
from pipeline_tasks.ask.known import Entry, questions
from pipeline_tasks.ask.parts import Column, Kind, Note, Table
from pipeline_tasks.ask.question import Question, Role, params_of, question_of, read_params
from pipeline_tasks.ask.written import written
from pipeline_tasks.cli import asking
from pipeline_tasks.constraints import Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.plots.plot import Plot, base_spec

ASKED = {name: entry for name, entry in questions().items() if entry.is_question}


@dataclass(frozen=True, slots=True)
class Params:
    """One of each kind."""

    root: str
    what: Annotated[str, "what is looked for", "WHAT"]
    most: Annotated[int, Range(1, 9), "how many", "N"] = 3
    by: Annotated[Literal["day", "week"], "how they are grouped"] = "day"
    least: Annotated[str, "or the least"] = ""
    name: Annotated[tuple[str, ...], "only these; may be repeated", "NAME"] = ()
    whole: Annotated[bool, "all of it"] = False
    role: Role = Role.VIEWER


def answered(params: Params) -> Answer:
    rows = [{"name": f"{params.what}<b>", "share": 0.25, "bytes": 12_345, "id": "0" * 32, "left": None}]
    columns = (Column("name"), Column("share", kind="share"), Column("bytes", kind="bytes"), Column("id", kind="id"))
    table = Table((*columns, Column("left", "what is left")), rows, "A table")
    plot = Plot("A plot", base_spec([{"a": 1}]), ("a", "b"), [("x", 1)], "what to see")
    return Answer("An answer", [Note(f"asked by {params.role}"), table, plot], exit_code=params.most)


QUESTION = Question(Params, answered, Role.CURATOR, one_of=("by", "least"))


@pytest.mark.parametrize("name", ASKED)
def test_a_question_says_each_of_its_params_and_who_may_ask(name: str) -> None:
    question = question_of(ASKED[name])
    assert isinstance(question.role, Role)
    assert is_dataclass(question.params)
    assert question.params.__dataclass_params__.frozen  # type: ignore[attr-defined]
    for param in params_of(question):
        assert param.help, param.name
        assert (
            param.is_required or param.is_repeated or param.kind is bool or param.read(str(param.default)) is not None
        )
    names = {each.name for each in fields(question.params)}
    assert names >= {*question.bounds, *question.was, *question.one_of}
    assert question.role is not Role.VIEWER or not ASKED[name].shows


def command(monkeypatch: pytest.MonkeyPatch) -> tuple[asking.AskedCommand, argparse.ArgumentParser]:
    monkeypatch.setattr(asking, "question_of", lambda _: QUESTION)
    known = asking.AskedCommand(Entry("a", "b", "look", is_question=True))
    parser = argparse.ArgumentParser()
    known.add_arguments(parser)
    return known, parser


def test_params_are_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    known, parser = command(monkeypatch)
    root, more = str(tmp_path), ["--most", "4", "--name", "a", "--name", "b", "--whole", "--json"]
    options = parser.parse_args(["this", root, *more])
    assert (options.what, options.root, options.most, options.by) == ("this", root, 4, "day")
    assert known.answer(options) == known.answer(parser.parse_args([root, "this", *more])) == 4
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    with pytest.raises(RecipeError, match="nowhere does not exist"):
        known.answer(parser.parse_args(["this", str(tmp_path / "nowhere")]))
    [row] = json.loads(first)
    assert row == {"name": "this<b>", "share": 0.25, "bytes": 12_345, "id": "0" * 32, "left": None}
    for wrong in (["this", "--most", "0"], ["this", "--most", "many"], ["this", "--by", "year"], []):
        with pytest.raises(SystemExit, match="2"):
            parser.parse_args(wrong)
    assert "from 1 to 9" in capsys.readouterr().err


def test_params_are_read_from_texts_and_who_asks_is_filled_in() -> None:
    read = read_params(
        QUESTION, {"what": "x", "most": "5", "by": "day", "name": ["a", "b"], "whole": "1"}, "root", Role.CURATOR
    )
    assert read == Params("root", "x", 5, "day", "", ("a", "b"), whole=True, role=Role.CURATOR)
    for wrong, said in (
        ({"what": "x", "most": "10"}, "most must be"),
        ({"what": ""}, "what is looked for"),
        ({"what": "x", "by": "day", "least": "1"}, "name one of by, least"),
        ({"what": "x"}, "name one of by, least"),
        ({"what": "x", "role": "steward"}, "there is no param 'role'"),
        ({"what": "x", "root": "/etc"}, "there is no param 'root'"),
    ):
        with pytest.raises(RecipeError, match=re.escape(said)):
            read_params(QUESTION, wrong, "root", Role.VIEWER)


def test_an_answer_is_lines_and_html_by_the_kinds_of_its_columns() -> None:
    answer = answered(Params("root", "x"))
    lines = str(answer).splitlines()
    assert lines[:5] == [
        "asked by viewer",
        "",
        "A table",
        "name   share    bytes  id",
        f"x<b>  25.0 %  12.3 kB  {'0' * 32}",
    ]
    shown = answer._repr_html_()
    assert "x&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert 'data-spec="{&quot;$schema' in shown
    assert "what is left" not in shown, "no row has it"
    many = Answer("", [Table((Column("a"),), [{"a": f"row {at}"} for at in range(MOST + 1)])])._repr_html_()
    assert ("row 199<" in many, "row 200<" in many, "The first 200 of 201 rows" in many) == (True, False, True)
    assert "a&lt;i&gt; <code>c&amp;</code>" in Answer("", [Note("a<i> `c&`")])._repr_html_()


def test_counts_by_name_are_lines_below_their_row() -> None:
    rows = [{"a": "first", "b": {"x": 2, "y": 1}}, {"a": "second", "b": {}}]
    assert str(Answer("", [Table((Column("a"), Column("b", kind="tally")), rows)])).splitlines() == [
        "a  b",
        "first",
        "    x 2, y 1",
        "second",
    ]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("count", 1234, "1,234"),
        ("time", "2026-11-26T10:20:30+00:00", "2026-11-26 10:20"),
        ("tally", {"a": 1, "b": 2000}, "a 1, b 2,000"),
        ("names", {"stage": "pack"}, "stage pack"),
        ("flag", True, "yes"),
        ("flag", False, "-"),
        ("digest", "0123456789abcdef", "0123456789ab"),
        ("seconds", 250, "4 min 10 s"),
        ("text", "", "-"),
        ("count", None, "-"),
    ],
)
def test_a_value_is_written_by_its_kind(kind: Kind, value: object, text: str) -> None:
    assert written(kind, value) == text
