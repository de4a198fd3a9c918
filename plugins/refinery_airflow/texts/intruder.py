"""Gathers what the page of the foreign document shows: five documents of a draw, and how often readers find it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated
from urllib.parse import quote, urlencode

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, Field
from refinery_study.intruder import outcome_line
from refinery_study.intruder.answers import Found, IntruderAnswer, answers, found, save
from refinery_study.intruder.drawing import CHANCE, Draw, Population, draw, population, rows_of, schema_of
from refinery_study.intruder.groups import groupable, grouping
from refinery_study.read.sample import Sampled, read_drawn

from pipeline_tasks.ask.question import Role
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import curator, holds, require
from refinery_airflow.pages.fields import SEE_OTHER, UNPROCESSABLE, Name, Reason, Seed
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import base, root
from refinery_airflow.texts.read import MOST_ROWS, _require_own, token_of

router = APIRouter(route_class=LookRoute)


SHOWN = 3_000
"""Characters of a text that are shown."""

USUAL = ("score", "language")
"""Columns of which the first that a version has groups its documents unless another is named."""

OTHERS = "Choose one of the five documents that are shown."


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for: the grouping as it is written, the group of the four ("" for any), and the draw's seed."""

    by: str = ""
    group: str = ""
    seed: int = 1

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The fields of an address."""
        return [(name, str(value)) for name, value in (("by", self.by), ("group", self.group)) if value] + [
            ("seed", str(self.seed))
        ]


@dataclass(frozen=True, slots=True)
class IntruderPage:
    """The page: the draw with its texts, the reader's answer to it, and the shares of all answers to the grouping.

    A user who may not read texts sees `found` alone.
    """

    version: Version
    asked: Asked
    columns: Sequence[str]
    found: Found
    groups: Sequence[str] = ()
    drawn: Draw | None = None
    documents: Sequence[Sampled] = ()
    given: IntruderAnswer | None = None
    token: str = ""
    message: str = ""

    @property
    def chance(self) -> float:
        """The share of right answers by chance."""
        return CHANCE

    @property
    def column(self) -> str:
        """The column that groups."""
        return self.asked.by.partition("/")[0]

    @property
    def bands(self) -> str:
        """The number of bands, "" for a column whose values are the groups."""
        return self.asked.by.partition("/")[2]

    @property
    def outcome(self) -> str:
        """Whether the reader's answer is right, in one line."""
        return outcome_line(self.given) if self.given else ""

    @property
    def here(self) -> str:
        """The address of this draw."""
        return address_of(self.version, self.asked)

    @property
    def following(self) -> str:
        """The address of the next draw."""
        return address_of(self.version, replace(self.asked, seed=self.asked.seed + 1))

    def command(self, root: str) -> str:
        """Return the command that asks the same."""
        named = [
            "refinery",
            "look",
            "intruder",
            root,
            "--recipe",
            self.version.recipe,
            "--snapshot",
            self.version.snapshot,
        ]
        group = ["--group", self.asked.group] if self.asked.group else []
        return shlex.join([*named, "--by", self.asked.by, *group, f"--seed={self.asked.seed}"])


def address_of(version: Version, asked: Asked) -> str:
    """Return the address of a draw."""
    path = f"{quote(version.recipe, safe='')}/{quote(version.snapshot, safe='')}"
    return f"{base()}/intruder/{path}?{urlencode(asked.fields)}"


def intruder_page(root: str, version: Version, asked: Asked, reader: str = "") -> IntruderPage:
    """Return the page of a draw for a reader, or without one the shares alone.

    RecipeError for a training dataset. What else is wrong is a message of the page.
    """
    schema = schema_of(root, version)
    columns = groupable(schema)
    usual = next((name for name in USUAL if name in columns), columns[0] if columns else "")
    asked = replace(asked, by=asked.by or usual)
    page = IntruderPage(version, asked, columns, found([]))
    try:
        asked = replace(asked, by=grouping(asked.by, schema).name)
        given = answers(root, version.recipe, asked.by)
        page = replace(page, asked=asked, found=found(given))
        return _with_draw(root, page, given, reader) if reader else page
    except RecipeError as error:
        return replace(page, message=str(error))


def _with_draw(root: str, page: IntruderPage, given: Sequence[IntruderAnswer], reader: str) -> IntruderPage:
    documents = population_of(root, page.version, page.asked.by)
    page = replace(page, groups=documents.names)
    drawn = draw(documents, page.asked.seed, page.asked.group)
    own = next((each for each in given if each.reader == reader and each.ids == drawn.ids), None)
    texts = read_drawn(root, page.version, drawn.documents)
    return replace(page, drawn=drawn, documents=texts, given=own, token=token_of(reader, page.version))


def population_of(root: str, version: Version, by: str) -> Population:
    """Return the documents that are drawn from; RecipeError where a request would look at too many rows."""
    return _population(root, version.recipe, version.number, by)


@lru_cache(maxsize=8)
def _population(root: str, recipe: str, number: int, by: str) -> Population:
    """As `population_of`; a version never changes."""
    [version] = [each for each in version_log.versions(root, recipe) if each.number == number]
    if rows_of(root, version) > MOST_ROWS:
        message = (
            f"snapshot {version.snapshot} has {rows_of(root, version):,} documents, and a page draws among "
            f"{MOST_ROWS:,}; the command below has no limit"
        )
        raise RecipeError(message)
    return population(root, version, grouping(by, schema_of(root, version)))


def answered(root: str, version: Version, asked: Asked, reader: str, form: Mapping[str, str]) -> str:
    """Store which document a reader chose; return the address of the draw, which now says which one was foreign.

    RecipeError for a document that the draw does not show.
    """
    by = grouping(asked.by, schema_of(root, version)).name
    drawn = draw(population_of(root, version, by), asked.seed, asked.group)
    if form["chosen"] not in drawn.ids:
        raise RecipeError(OTHERS)
    save(root, version, by, drawn, form["chosen"], reader)
    return address_of(version, replace(asked, by=by))


class IntruderForm(BaseModel):
    """What the page of the foreign document sends: the document that was chosen."""

    chosen: str = Field("", max_length=64)
    token: str = Field("", max_length=100)


def intruder_asked(by: Name = "", column: Name = "", bands: Name = "", group: Reason = "", seed: Seed = 1) -> Asked:
    """Return which draw is asked for: an address names the grouping, the form its column and bands."""
    named = f"{column.strip()}/{bands.strip()}" if bands.strip() else column.strip()
    return Asked(by.strip() or named, group.strip(), seed)


IntruderDraw = Annotated[Asked, Depends(intruder_asked)]


@router.get("/intruder/{recipe}/{snapshot}")
def intruder_of_snapshot(
    request: Request, recipe: str, snapshot: str, user: GetUserDep, asked: IntruderDraw
) -> HTMLResponse:
    """Show five documents, four of one group, to say which is foreign, and how often readers have found it.

    Who may not read texts sees the shares alone.
    """
    version = version_log.current(root(), recipe, snapshot)
    may_read = holds(request, user, Role.CURATOR)
    if may_read:
        require(request, user, Role.CURATOR)
    page = intruder_page(root(), version, asked, user.get_name() if may_read else "")
    shown = _intruder_response(page, may_read=may_read)
    shown.status_code = UNPROCESSABLE if page.message and request.query_params else shown.status_code
    return shown


@router.post("/intruder/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def intruder_answer(
    request: Request,
    recipe: str,
    snapshot: str,
    user: GetUserDep,
    asked: IntruderDraw,
    form: Annotated[IntruderForm, Form()],
) -> Response:
    """Store a reader's answer, and show the draw with what was foreign; 403 for a form not of this reader's page."""
    version, reader = version_log.current(root(), recipe, snapshot), user.get_name()
    _require_own(request, form.token, reader, version)
    try:
        address = answered(root(), version, asked, reader, form.model_dump())
    except RecipeError as error:
        page = replace(intruder_page(root(), version, asked, reader), message=str(error))
        shown = _intruder_response(page)
        shown.status_code = UNPROCESSABLE
        return shown
    return RedirectResponse(address, SEE_OTHER)


def _intruder_response(page: IntruderPage, *, may_read: bool = True) -> HTMLResponse:
    values = {"command": page.command(root()), "may_read": may_read, "longest": SHOWN}
    known = [document.id for document in page.documents]
    return show("intruder.html", version=page.version, shown=page, **values).of(len(known), known)
