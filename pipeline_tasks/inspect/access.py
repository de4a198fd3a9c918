"""Lists who saw texts of a root: the looks of pages, and of commands where the root is shared."""

from dataclasses import asdict, dataclass
from typing import Annotated

from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.ask.parts import Column, Note, Table
from pipeline_tasks.ask.question import Question, Role
from pipeline_tasks.constraints import Word
from pipeline_tasks.counted import counted
from pipeline_tasks.store.access_log import Look, looks

DAY = Word(r"(\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))?", "a day, as 2026-11-26")


@dataclass(frozen=True, slots=True)
class Params:
    """Whose looks, of which days, at what."""

    root: str
    since: Annotated[str, DAY, "looks of this day, in UTC, and later", "DAY"] = ""
    who: Annotated[str, "looks of this user; of a command NAME or NAME@HOST", "NAME"] = ""
    document: Annotated[str, "looks at this document, by its id", "ID"] = ""


def answer(params: Params) -> Answer:
    """Return the looks in the order of time."""
    chosen = [asdict(look) for look in looks(params.root, params.since) if _is_chosen(look, params)]
    said = counted(len(chosen), "look") if chosen else "nobody has looked: there is no such entry in the access log"
    return Answer("Who saw texts", [Table(COLUMNS, chosen), Note(said)])


def _is_chosen(look: Look, params: Params) -> bool:
    return params.who in ("", look.by, look.by.partition("@")[0]) and params.document in ("", *look.documents)


COLUMNS = (
    Column("at", "at (UTC)", "time"),
    Column("by"),
    Column("through"),
    Column("role"),
    Column("what"),
    Column("of", kind="names"),
    Column("rows", kind="count"),
    Column("asked", kind="digest"),
    Column("purpose", "for"),
)

QUESTION = Question(Params, answer, Role.STEWARD, was={"who": ("--by",)})
