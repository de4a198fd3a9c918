"""Gathers what the reading page shows: a drawn document beside its page, and what readers say of the recipe."""

import hashlib
import hmac
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated
from urllib.parse import quote, urlencode

from airflow.api_fastapi.auth.tokens import get_signing_key
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, Field
from refinery_study.read import answer_of, outcome_line
from refinery_study.read.answers import LONGEST, answers, save
from refinery_study.read.beside import LandedPage, cut_pieces, landed_page
from refinery_study.read.sample import Choice, Drawn, Sampled, draw, read_drawn, reasons_of_judges, rows_drawn_from
from refinery_study.read.shares import Reading, findings, reading

from pipeline_tasks.ask.question import Role
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.document.text_edits import Piece
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.purpose import require_own_form
from refinery_airflow.access.roles import curator, holds, require
from refinery_airflow.pages.fields import SEE_OTHER, UNPROCESSABLE, Reason, Row, Seed
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import base, root

router = APIRouter(route_class=LookRoute)


MOST_ROWS = 500_000
"""Rows among which a request draws; the command has no bound."""

MOST_DRAWN = 200
"""Documents of each kind that a sample has."""

Names = Annotated[list[Reason], Query(max_length=20)]
"""Reasons or languages."""

Count = Annotated[int, Query(ge=0, le=MOST_DRAWN)]
"""How many documents are drawn."""

GOOD, BAD = "good", "bad"
NO_ANSWER = "An answer is good, or bad with the reason in a few words, such as: a menu, half of the page is missing."


@dataclass(frozen=True, slots=True)
class ReadingPage:
    """The page: what is drawn, the document that is read now beside its page, and the shares of all answers.

    `place` is the document's number in the sample, from 1. `judged` is the document that was answered just now, with
    what became of it. A user who may not read texts sees `read` alone.
    """

    version: Version
    choice: Choice
    read: Reading
    reasons: Mapping[str, int]
    drawn: int = 0
    place: int = 0
    document: Sampled | None = None
    pieces: Sequence[Piece] = ()
    landed: LandedPage | None = None
    judged: Sampled | None = None
    token: str = ""
    message: str = ""

    @property
    def findings(self) -> list[tuple[str, str]]:
        """Rules that rejected good documents, each with what to do."""
        return list(findings(self.read))

    @property
    def longest(self) -> int:
        """Characters that a reason may have."""
        return LONGEST

    @property
    def address(self) -> str:
        """The address of the sample."""
        return _address(self.version, self.choice)

    @property
    def here(self) -> str:
        """The address of the document that is shown."""
        return _address(self.version, self.choice, self.place - 1)

    @property
    def following(self) -> str:
        """The address of the next document, without an answer on this one."""
        return _address(self.version, self.choice, self.place)

    @property
    def other(self) -> str:
        """The address of another sample of the same kind."""
        return _address(self.version, replace(self.choice, seed=self.choice.seed + 1))

    def command(self, root: str) -> str:
        """Return the command that asks for the same."""
        choice = self.choice
        named = ["refinery", "read", root, "--recipe", self.version.recipe, "--snapshot", self.version.snapshot]
        counts = [f"--kept={choice.kept}", f"--rejected={choice.rejected}", f"--seed={choice.seed}"]
        chosen = [*(f"--reason={reason}" for reason in choice.reasons), *(f"--language={c}" for c in choice.languages)]
        return shlex.join([*named, *counts, *chosen, "--beside"])


def _address(version: Version, choice: Choice, after: int = 0) -> str:
    usual = Choice()
    counts = {name: getattr(choice, name) for name in ("kept", "rejected", "seed")}
    fields = [(name, str(value)) for name, value in counts.items() if value != getattr(usual, name)]
    fields += [("reason", reason) for reason in choice.reasons] + [("language", code) for code in choice.languages]
    query = urlencode([*fields, *([("after", str(after))] if after else [])])
    path = f"{quote(version.recipe, safe='')}/{quote(version.snapshot, safe='')}"
    return f"{base()}/read/{path}" + (f"?{query}" if query else "")


def shares_of(root: str, version: Version) -> ReadingPage:
    """Return the page for who may not read texts: what readers say."""
    return ReadingPage(version, Choice(), reading(answers(root, version.recipe)), reasons_of_judges(root, version))


def reading_page(
    root: str, version: Version, choice: Choice, after: int, reader: str, *, beside: bool = True
) -> ReadingPage:
    """Return the page of the first document behind number `after` of a sample that a reader has not judged.

    Behind the last one it begins again at the first. Without `beside` it has neither the landed page nor what stages
    cut from the text. RecipeError for a training dataset.
    """
    given = answers(root, version.recipe)
    page = ReadingPage(version, choice, reading(given), reasons_of_judges(root, version))
    try:
        drawn = drawn_of(root, version, choice)
    except RecipeError as error:
        return replace(page, message=str(error))
    own = {answer.id for answer in given if answer.reader == reader}
    order = [*range(after, len(drawn)), *range(min(after, len(drawn)))]
    unread = [at for at in order if drawn[at].id not in own]
    is_judged = 0 < after <= len(drawn) and drawn[after - 1].id in own
    judged = read_drawn(root, version, [drawn[after - 1]])[0] if is_judged else None
    page = replace(page, drawn=len(drawn), judged=judged, token=token_of(reader, version))
    return _with_document(root, page, unread[0], drawn[unread[0]], beside=beside) if unread else page


def _with_document(root: str, page: ReadingPage, at: int, drawn: Drawn, *, beside: bool) -> ReadingPage:
    [document] = read_drawn(root, page.version, [drawn])
    if not beside:
        return replace(page, place=at + 1, document=document)
    pieces = cut_pieces(root, page.version, document)
    return replace(
        page, place=at + 1, document=document, pieces=pieces, landed=landed_page(root, page.version, document)
    )


def drawn_of(root: str, version: Version, choice: Choice) -> tuple[Drawn, ...]:
    """Return the places of the documents that are drawn; RecipeError where a request would look at too many rows."""
    return _drawn(root, version.recipe, version.number, choice)


@lru_cache(maxsize=16)
def _drawn(root: str, recipe: str, number: int, choice: Choice) -> tuple[Drawn, ...]:
    """As `drawn_of`; of a version, which never changes, a sample is drawn once."""
    [version] = [each for each in version_log.versions(root, recipe) if each.number == number]
    rows = rows_drawn_from(root, version)
    if rows > MOST_ROWS:
        message = (
            f"snapshot {version.snapshot} has {rows:,} rows, and a page draws among {MOST_ROWS:,}; the command below "
            "has no limit"
        )
        raise RecipeError(message)
    return tuple(draw(root, version, choice))


# --- Answers ----------------------------------------------------------------------------------------------------------


def answered(root: str, version: Version, choice: Choice, reader: str, answer: Mapping[str, str]) -> str:
    """Store what a reader says of a drawn document; return the address of the next one.

    `answer` has the `id`, the `verdict` and `why`. RecipeError for what is no answer, and for what is not drawn.
    """
    verdict, why = answer["verdict"], answer["why"].strip()[:LONGEST]
    if verdict not in (GOOD, BAD) or (verdict == BAD and not why):
        raise RecipeError(NO_ANSWER)
    drawn = drawn_of(root, version, choice)
    at = next((at for at, each in enumerate(drawn) if each.id == answer["id"]), None)
    if at is None:
        message = f"document {answer['id'][:32]} is not in this sample; open the page again"
        raise RecipeError(message)
    [document] = read_drawn(root, version, [drawn[at]])
    save(root, answer_of(version, document, reader, verdict, why))
    return _address(version, choice, at + 1)


def token_of(reader: str, version: Version) -> str:
    """Return what a form proves by that this server gave it to this user, for this recipe."""
    key = get_signing_key("api", "secret_key")
    signed = f"refinery read\n{reader}\n{version.recipe}\n{version.snapshot}"
    return hmac.new(key.encode(), signed.encode(), hashlib.sha256).hexdigest()


def is_token(token: str, reader: str, version: Version) -> bool:
    """Return whether a form has the token of its reader."""
    return hmac.compare_digest(token.encode(), token_of(reader, version).encode())


class ReadForm(BaseModel):
    """What the reading page's form sends: the document, the verdict on it, and why."""

    id: str = Field(max_length=64)
    verdict: str = Field("", max_length=10)
    why: str = Field("", max_length=LONGEST)
    after: int = Field(0, ge=0)
    token: str = Field("", max_length=100)


def read_choice(
    reason: Names = [],  # noqa: B006 -- FastAPI copies it
    language: Names = [],  # noqa: B006
    kept: Count = 30,
    rejected: Count = 30,
    seed: Seed = 1,
) -> Choice:
    """Return which documents are drawn to be read; empty fields of the form choose nothing."""
    return Choice(kept, rejected, seed, *(tuple(filter(None, names)) for names in (reason, language)))


Drawing = Annotated[Choice, Depends(read_choice)]


@router.get("/read/{recipe}/{snapshot}")
def read_page(
    request: Request, recipe: str, snapshot: str, user: GetUserDep, choice: Drawing, after: Row = 0
) -> HTMLResponse:
    """Show a document of a blind sample beside its landed page, to judge it, and what readers have said so far.

    Who may not read texts sees the shares alone; curators read kept documents, without the landed page.
    """
    version = version_log.current(root(), recipe, snapshot)
    if not holds(request, user, Role.CURATOR):
        return _read_response(version, shares_of(root(), version), Role.VIEWER)
    role = _reader(request, user)
    page = reading_page(root(), version, _readable(choice, role), after, user.get_name(), beside=role is Role.STEWARD)
    return _read_response(version, page, role)


@router.post("/read/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def read_answer(
    request: Request, recipe: str, snapshot: str, user: GetUserDep, choice: Drawing, form: Annotated[ReadForm, Form()]
) -> Response:
    """Store a reader's answer, and show the next document; 403 for a form that is not of this reader's page."""
    version, reader, role = version_log.current(root(), recipe, snapshot), user.get_name(), _reader(request, user)
    choice = _readable(choice, role)
    _require_own(request, form.token, reader, version)
    try:
        following = answered(root(), version, choice, reader, form.model_dump())
    except RecipeError as error:
        page = reading_page(root(), version, choice, form.after, reader, beside=role is Role.STEWARD)
        shown = _read_response(version, replace(page, message=str(error)), role)
        shown.status_code = UNPROCESSABLE
        return shown
    return RedirectResponse(following, SEE_OTHER)


def _reader(request: Request, user: GetUserDep) -> Role:
    """Return as what a curator or steward reads, and have the look logged."""
    role = Role.STEWARD if holds(request, user, Role.STEWARD) else Role.CURATOR
    require(request, user, role)
    return role


def _readable(choice: Choice, role: Role) -> Choice:
    """Return the sample without rejected documents for who is no steward."""
    return choice if role is Role.STEWARD else replace(choice, rejected=0, reasons=())


def _require_own(request: Request, token: str, reader: str, version: Version) -> None:
    """Raise 403 for a form that is not of this reader's page."""
    require_own_form(request, has_token=is_token(token, reader, version))


def _read_response(version: Version, page: ReadingPage, role: Role) -> HTMLResponse:
    values = {"command": page.command(root()), "outcome_of": outcome_line, "may_read": role is not Role.VIEWER}
    values |= {"is_steward": role is Role.STEWARD}
    known = [document.id for document in (page.document, page.judged) if document]
    return show("read.html", version=version, shown=page, most=MOST_DRAWN, **values).of(len(known), known)
