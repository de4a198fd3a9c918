"""The pages of a disclosure: answers and tables, each with what it was computed from, as JSON, Markdown and HTML."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

from pipeline_tasks.report.html import Child, Html, count, join, page, section, shown, tag
from pipeline_tasks.report.html import table as html_table

NOT_GIVEN = "not given"

By = Literal["root", "provider", ""]
"""Who gives an answer: the root, by what is stored in it; the provider, in a file; nobody."""

GIVERS: Mapping[By, str] = {"root": "", "provider": " (stated by the provider)", "": ""}

Cell = str | int | float
Rows = tuple[tuple[Cell, ...], ...]


class Evidence:
    """What figures were computed from: objects by path and SHA-256, each with an id that answers cite."""

    def __init__(self) -> None:
        """Start without any."""
        self._ids: dict[tuple[str, str], str] = {}
        self._what: dict[str, str] = {}

    def cite(self, path: str, digest: str, what: str) -> str:
        """Return the id of an object: of the same path and digest always the same."""
        known = self._ids.setdefault((path, digest), f"E{len(self._ids) + 1}")
        self._what.setdefault(known, what)
        return known

    def listed(self) -> list[dict[str, str]]:
        """Return every object that was cited, in order."""
        return [
            {"id": known, "what": self._what[known], "path": path, "sha256": digest}
            for (path, digest), known in self._ids.items()
        ]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered: a text or a number with its unit; who gives it; and what it was computed from."""

    value: str | int | bool = ""
    unit: str = ""
    by: By = "root"
    evidence: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The answer in words."""
        if self.by == "":
            return NOT_GIVEN
        if isinstance(self.value, bool):
            return "yes" if self.value else "no"
        shown_value = f"{self.value:,}" if isinstance(self.value, int) else self.value
        return f"{shown_value} {self.unit}".rstrip()

    def facts(self) -> dict[str, Any]:
        """Return the answer as JSON: null if nobody gives one."""
        unit = {"unit": self.unit} if self.unit else {}
        value = None if self.by == "" else self.value
        return {"value": value, **unit, "by": self.by or NOT_GIVEN, "evidence": list(self.evidence)}


MISSING = Answer(by="")


def provider(text: str, otherwise: Answer = MISSING) -> Answer:
    """Return the answer of a provider, or another one where the provider gives none."""
    return Answer(text.strip(), by="provider") if text.strip() else otherwise


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head; `note` says what they are."""

    name: str
    title: str
    head: tuple[str, ...]
    rows: Rows
    evidence: tuple[str, ...] = ()
    note: str = ""

    def facts(self) -> dict[str, Any]:
        """Return the table as JSON."""
        rows = [dict(zip(self.head, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "evidence": list(self.evidence), "note": self.note}


@dataclass(frozen=True, slots=True)
class Part:
    """A section: answers to its questions, and tables."""

    name: str
    title: str
    answers: Mapping[str, Answer] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    lead: str = ""

    def facts(self) -> dict[str, Any]:
        """Return the section as JSON."""
        return {
            "title": self.title,
            "answers": {question: answer.facts() for question, answer in self.answers.items()},
            "tables": {table.name: table.facts() for table in self.tables},
        }


@dataclass(frozen=True, slots=True)
class Page:
    """A page: a title, what it is, its sections, and what was cited."""

    title: str
    lead: tuple[str, ...]
    parts: tuple[Part, ...]
    evidence: Evidence

    def facts(self) -> dict[str, Any]:
        """Return the page as JSON."""
        return {
            "title": self.title,
            "lead": list(self.lead),
            "sections": {part.name: part.facts() for part in self.parts},
            "evidence": self.evidence.listed(),
        }

    @property
    def missing(self) -> int:
        """How many questions nobody has answered."""
        return sum(answer.by == "" for part in self.parts for answer in part.answers.values())


def cited(evidence: Iterable[str]) -> str:
    """Return ids as a person reads them: `[E1, E3-E5]`, "" for none."""
    numbers = sorted({int(name[1:]) for name in evidence})
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda at: at[1] - at[0])]
    names = [f"E{run[0]}-E{run[-1]}" if run[1:] else f"E{run[0]}" for run in runs]
    return f"[{', '.join(names)}]" if names else ""


# --- Markdown --------------------------------------------------------------------------------------------------------

_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~]|&(?=[#A-Za-z]))")
"""What means something to Markdown, with the `&` of an entity: `&lt;` is shown as it was written."""


def markdown(of: Page) -> bytes:
    """Return a page as Markdown: whatever a name from the crawl has in it is shown and not obeyed."""
    return ("\n".join(_markdown_lines(of)) + "\n").encode()


def _markdown_lines(of: Page) -> Iterator[str]:
    yield from (f"# {_plain(of.title)}", "")
    for line in of.lead:
        yield from (_plain(line), "")
    for part in of.parts:
        yield from (f"## {_plain(part.title)}", "")
        if part.lead:
            yield from (_plain(part.lead), "")
        for question, answer in part.answers.items():
            yield f"- **{_plain(question)}**: {_said(answer)}"
        yield ""
        for table in part.tables:
            yield from _markdown_table(table)
    yield from ("## What the figures were computed from", "")
    rows = tuple((each["id"], each["what"], each["path"], each["sha256"]) for each in of.evidence.listed())
    yield from _rows(("", "what", "object", "SHA-256"), rows)


def _said(answer: Answer) -> str:
    if answer.by == "":
        return f"*{NOT_GIVEN}*"
    return f"{_plain(answer.text)}{GIVERS[answer.by]} {_plain(cited(answer.evidence))}".rstrip()


def _markdown_table(table: Table) -> Iterator[str]:
    yield from (f"### {_plain(table.title)} {_plain(cited(table.evidence))}".rstrip(), "")
    if table.note:
        yield from (_plain(table.note), "")
    yield from _rows(table.head, table.rows)


def _rows(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    if not rows:
        yield from ("(none)", "")
        return
    numeric = _numeric(rows)
    yield f"| {' | '.join(map(_plain, head))} |"
    yield f"|{'|'.join('---:' if at in numeric else '---' for at in range(len(head)))}|"
    for row in rows:
        yield f"| {' | '.join(_plain(_cell(cell)) for cell in row)} |"
    yield ""


def _plain(text: str) -> str:
    """Return a text in one line whose characters mean nothing to Markdown."""
    return _MARKS.sub(r"\\\1", " ".join(shown(text, 4000).split()))


def _numeric(rows: Sequence[Sequence[Cell]]) -> list[int]:
    return [at for at, cell in enumerate(rows[0]) if not isinstance(cell, str)] if rows else []


def _cell(cell: Cell) -> str:
    return cell if isinstance(cell, str) else count(cell) if isinstance(cell, int) else f"{cell:.2%}"


# --- HTML ------------------------------------------------------------------------------------------------------------


def html(of: Page) -> bytes:
    """Return a page as HTML that opens offline."""
    lead = [tag("p", line) for line in of.lead]
    opening = tag("header", tag("h1", of.title), *lead)
    listed = of.evidence.listed()
    rows = [(each["id"], each["what"], tag("code", each["path"]), tag("code", each["sha256"])) for each in listed]
    evidence = section(
        "What the figures were computed from",
        "Each object by its path in the root and its SHA-256.",
        html_table(("", "what", "object", "SHA-256"), rows),
    )
    return page(of.title, opening, *(_html_part(part) for part in of.parts), evidence)


def _html_part(part: Part) -> Html:
    answers = [(question, _html_answer(answer)) for question, answer in part.answers.items()]
    content: list[Child] = [html_table(("question", "answer"), answers)] if answers else []
    for table in part.tables:
        content.append(tag("h3", f"{table.title} {cited(table.evidence)}".rstrip()))
        if table.note:
            content.append(tag("p", table.note, css="dim"))
        cells = [[_cell(cell) for cell in row] for row in table.rows]
        content.append(html_table(table.head, cells, numeric=_numeric(table.rows)) if cells else tag("p", "(none)"))
    return section(part.title, part.lead, *content)


def _html_answer(answer: Answer) -> Html:
    if answer.by == "":
        return tag("span", NOT_GIVEN, css="warn")
    giver = tag("span", f"{GIVERS[answer.by]} {cited(answer.evidence)}".rstrip(), css="dim")
    return join((shown(answer.text, 4000), giver))
