"""Shows questions: an index of them, and for each a form of its params with the answer, for those who may ask.

A question that has a recipe among its params has a page of each recipe, too, for those who have the role for that one.
"""

import logging
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Any
from urllib.parse import quote, urlencode

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup

from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.ask.html import html_of
from pipeline_tasks.ask.known import GROUPS, Entry, name_in, questions
from pipeline_tasks.ask.parts import Column, Row
from pipeline_tasks.ask.question import Param, Question, Role, params_of, question_of, read_params
from pipeline_tasks.errors import LibraryMissing, RecipeError
from pipeline_tasks.publish.logs import version_log
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import holds, may_see, refuse, require
from refinery_airflow.pages.fields import NOT_FOUND, SEE_OTHER, UNPROCESSABLE
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import base, root

router = APIRouter(route_class=LookRoute)

log = logging.getLogger("refinery")

LONGEST = 4096
"""Characters of a value: no address is longer."""

OF = ("recipe", "snapshot")
"""Params that an address names, of the page of a recipe."""

ID = 32
"""Digits of the id of a document."""


@dataclass(frozen=True, slots=True)
class AskPage:
    """The page of a question: what was given for its params, and the answer, or the message of what is wrong.

    `of` are params that its address names, and of those in `one_of` one has to be given.
    """

    name: str
    entry: Entry
    params: Sequence[Param]
    given: Mapping[str, Sequence[str]]
    of: Mapping[str, str]
    one_of: Sequence[str] = ()
    answer: Answer | None = None
    message: str = ""

    @property
    def title(self) -> str:
        """Its title."""
        return self.answer.title if self.answer else f"{self.entry.help[:1].upper()}{self.entry.help[1:]}"

    @property
    def path(self) -> str:
        """Its address, below that of all questions."""
        return "/".join([slug_of(self.name), *(quote(value, safe="") for value in self.of.values())])

    @property
    def is_asked(self) -> bool:
        """Return whether all is given that has to be named."""
        lacks = any(param.is_required and not self.given[param.name] for param in self.params)
        return not lacks and (not self.one_of or any(self.given.get(name) for name in self.one_of))

    @property
    def html(self) -> Markup:
        """The answer; `html_of` has escaped it."""
        return Markup(html_of(self.answer.parts, address_of) if self.answer else "")  # noqa: S704 -- see above

    @property
    def command(self) -> str:
        """The command that asks the same without a bound."""
        words = [value for param in self.params if param.is_required for value in self.given.get(param.name, ())]
        options = [
            word
            for param in self.params
            if not param.is_required
            for value in self.given.get(param.name, ())
            for word in ([param.flag] if param.kind is bool else [param.flag, value])
        ]
        of = [word for name, value in self.of.items() for word in (f"--{name}", value)]
        return shlex.join(["refinery", *self.name.split(), *words, root(), *of, *options])


def slug_of(name: str) -> str:
    """Return a question as addresses have it: `keep access` as keep-access."""
    return name.replace(" ", "-")


@router.get("/ask")
def questions_page(request: Request, user: GetUserDep) -> HTMLResponse:
    """List the questions that a user may ask, by group."""
    held = [role for role in Role if holds(request, user, role)]
    asked = [(name, each) for name, each in questions().items() if each.is_question and _role_of(name, each) in held]
    asked.sort(key=lambda pair: GROUPS.index(pair[1].group))
    by_group = groupby(asked, key=lambda pair: pair[1].group)
    groups = [(group, [(slug_of(name), name, each) for name, each in every]) for group, every in by_group]
    return show("questions.html", groups=groups)


def _role_of(name: str, entry: Entry) -> Role | None:
    """Return the role of a question, None of one whose module somebody else brings and cannot be imported."""
    try:
        return question_of(entry).role
    except Exception:
        log.exception("the question %s of %s cannot be asked; repair or uninstall its package", name, entry.module)
        return None


@router.get("/ask/{name}")
@router.get("/ask/{name}/{recipe}")
@router.get("/ask/{name}/{recipe}/{snapshot}")
def question_page(name: str, request: Request, user: GetUserDep) -> HTMLResponse:
    """Ask a question, and show the answer to those who have its role; it shows more to some."""
    known, entry = _asked(name)
    request.state.what = known.rpartition(" ")[2]  # a look has the name of its command
    question = question_of(entry)
    if not holds(request, user, question.role):
        refuse(question.role)
    of = {key: request.path_params[key] for key in OF if key in request.path_params}
    if of:
        _require_of(name, question, of)
    page = form_of(known, entry, request.query_params.multi_items(), of)
    if page.is_asked:
        page = answered(page, question, _role(request, user, entry, question))
    response = show("ask.html", shown=page)
    response.status_code = UNPROCESSABLE if page.message else response.status_code
    if page.answer:
        response.of(page.answer.rows, page.answer.documents, **page.answer.of)
    return response


@router.get("/breakdown/{recipe}/{snapshot}")
@router.get("/lineage/{recipe}/{snapshot}")
@router.get("/similar/{recipe}")
def moved_page(request: Request, recipe: str, snapshot: str = "") -> RedirectResponse:
    """Lead on from the address that the page of a question had."""
    name, _ = name_in([request.scope["route"].path.split("/")[1]])
    path = "/".join([slug_of(name), *(quote(value, safe="") for value in (recipe, snapshot) if value)])
    return RedirectResponse(f"{base()}/ask/{path}?{request.url.query}".rstrip("?"), SEE_OTHER)


def _asked(slug: str) -> tuple[str, Entry]:
    """Return the question of an address, which may have the name that the question had."""
    asked = {name: entry for name, entry in questions().items() if entry.is_question}
    names = {slug_of(entry.was): name for name, entry in asked.items()} | {slug_of(name): name for name in asked}
    if slug not in names:
        raise HTTPException(NOT_FOUND, f"there is no question {slug[:40]}; {base()}/ask lists all")
    return names[slug], asked[names[slug]]


def _require_of(slug: str, question: Question[Any], of: Mapping[str, str]) -> None:
    """Raise what a page of what is not there raises: of a question that takes none of it, or of no version."""
    if not {*of} <= {param.name for param in params_of(question)}:
        raise HTTPException(NOT_FOUND, f"{slug[:40]} is not asked of one {' and '.join(of)}; {base()}/ask lists all")
    version_log.current(root(), *of.values())


def _role(request: Request, user: GetUserDep, entry: Entry, question: Question[Any]) -> Role:
    """Return as what a user asks who has the role; the look is logged where texts are shown."""
    if not entry.shows:
        return question.role
    require(request, user, question.role)
    return Role.STEWARD if may_see(request, user, Role.STEWARD) else question.role


def form_of(name: str, entry: Entry, query: Iterable[tuple[str, str]], of: Mapping[str, str]) -> AskPage:
    """Return the page of a question without an answer; old names of params are understood.

    Params that a page bounds, or that its address names, are no part of its form.
    """
    question = question_of(entry)
    params = [param for param in params_of(question) if param.name not in {*question.bounds, *of}]
    earlier = {old.strip("-").replace("-", "_"): new for new, names in question.was.items() for old in names}
    given: dict[str, list[str]] = {param.name: [] for param in params}
    for key, value in query:
        key_now = key if key in given else earlier.get(key, "")
        if key_now in given and value.strip():
            given[key_now].append(value.strip()[:LONGEST])
    return AskPage(name, entry, params, given, of, question.one_of)


def answered(page: AskPage, question: Question[Any], role: Role) -> AskPage:
    """Return the page with the answer to who has a role, or the message of what is wrong."""
    values = {each.name: _value(each, page.given[each.name]) for each in page.params if page.given[each.name]}
    try:
        answer = question.answer(read_params(question, {**question.bounds, **page.of, **values}, root(), role))
    except LibraryMissing:
        raise
    except RecipeError as error:
        return replace(page, message=str(error))
    return replace(page, answer=answer)


def _value(param: Param, values: Sequence[str]) -> object:
    return list(values) if param.is_repeated else values[-1]


@lru_cache(maxsize=256)
def _is_build(root: str, recipe: str) -> bool:
    """Return whether versions of a recipe are training datasets, as they are from the first one on."""
    return version_log.is_build(root, recipe)


def why_page(what: str) -> str:
    """Return the page with the story of an address, of an id or of words."""
    return f"{base()}/ask/why?{urlencode({'what': what})}"


def address_of(column: Column, row: Row) -> str:
    """Return the page that a value of a row leads to: a manifest, a document, a version, or the story of an address."""
    value, recipe = str(row[column.key]), str(row.get("recipe") or "")
    snapshot = str(row.get(f"{column.key}_snapshot") or row.get("snapshot") or "")
    path = f"{quote(recipe, safe='')}/{quote(snapshot, safe='')}"
    if column.kind == "path":
        return f"{base()}/manifest/{quote(value)}"
    if column.kind == "url":
        return why_page(value)
    if not recipe or row.get("version", "") is None:  # of no version
        return ""
    if column.kind == "id" and len(value) == ID:
        page = "find" if _is_build(root(), recipe) else f"document/{path}"
        return f"{base()}/{page}?{urlencode({'doc': value})}"
    return f"{base()}/snapshot/{path}" if column.kind == "version" else ""
