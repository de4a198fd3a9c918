"""Says what is asked behind a page, and what proves that a page is the last one.

An end that nothing proves is refused: a pull that takes one page for all of them looks like one that went well.
"""

import re
from dataclasses import replace
from typing import Any

from pipeline_tasks.errors import ContractError
from refinery_sources.api.answers import Answer
from refinery_sources.api.call import Call
from refinery_sources.api.journal import State
from refinery_sources.api.places import ABSENT, Absent, fields_of, kind_of, place_in, value_at
from refinery_sources.api.query import NUMBERED

MOST_EMPTY = 1_000
"""Pages without a record in a row that name a next page."""

_LINK = re.compile(r"<([^<>]*)>\s*((?:;\s*[^;,=\s]+\s*(?:=\s*(?:\"(?:\\.|[^\"\\])*\"|[^;,\s]*)\s*)?)*)(?:,|$)")
_REL = re.compile(r"(?i);\s*rel\s*=\s*(?:\"([^\"]*)\"|([^;,\s\"]+))")


def next_state(call: Call, url: str, answer: Answer, state: State, *, new: int) -> State:
    """Return the state behind a page, whose counts have the page already; ContractError if it contradicts itself.

    `new` is the number of records that no page before it had.
    `url` is what is asked next, "" with the proof in `end` if the page was the last.
    """
    pages = call.query.pages
    if pages.by == "once":
        _require_alone(answer, url)
        return _ended(state, "the only page")
    more = _more(call, url, answer)
    if state.behind and answer.records and not new:
        return _ended(state, "the last page again, and all of the total")
    after = _numbered if pages.by in NUMBERED else _followed
    return after(call, url, answer, state, more=more)


def _ended(state: State, proof: str) -> State:
    return replace(state, url="", end=proof)


def _require_alone(answer: Answer, url: str) -> None:
    if next_link(answer.headers.get("Link", "")):
        message = f"{url} has a header Link to a next page, and pages is `by: once`; write `by: link`"
        raise ContractError(message)


def _more(call: Call, url: str, answer: Answer) -> bool | None:
    """Return whether an answer says that there are more pages, None where it is not asked to say it."""
    if not call.query.pages.more or answer.is_refused:
        return None
    value = value_at(answer.body, call.query.pages.more)
    if not isinstance(value, bool):
        message = f"{url} has {kind_of(value)} at {call.query.pages.more}, where `more` says true or false is"
        raise ContractError(message)
    return value


# --- Pages that are counted ---------------------------------------------------------------------------------------


def _numbered(call: Call, url: str, answer: Answer, state: State, *, more: bool | None) -> State:
    pages, count = call.query.pages, len(answer.records)
    if state.behind and count:
        message = (
            f"{url} has {count} records, and the page before it was the last by `end: {pages.end}`: that proves no "
            "end here; write `end: empty`"
        )
        raise ContractError(message)
    if more is False:
        return _ended(state, f"{pages.more} is false")
    if not count:
        if more:
            message = f"{url} has no record, and {pages.more} says that there are more"
            raise ContractError(message)
        return _ended(state, "no page behind it" if answer.is_refused else "an empty page")
    number = int(pages.start) + (state.pages if pages.by == "page" else state.received)
    is_last = (pages.end == "short" and count < pages.size) or (
        pages.end == "total" and 0 <= state.most <= state.records
    )
    return replace(state, url=call.page(number), behind=is_last)


# --- Pages that name the next one ---------------------------------------------------------------------------------


def _followed(call: Call, url: str, answer: Answer, state: State, *, more: bool | None) -> State:
    pages = call.query.pages
    if more is False:
        return _ended(state, f"{pages.more} is false")
    if pages.end == "empty" and not answer.records:
        return _ended(state, "an empty page")
    following = _next(call, url, answer)
    if isinstance(following, str):
        if state.empties >= MOST_EMPTY:
            message = f"{url} is one of {MOST_EMPTY:,} pages in a row that have no record and name a next page"
            raise ContractError(message)
        return replace(state, url=following, followed=True)
    if more:
        message = f"{url} says by {pages.more} that there are more pages, and names none"
        raise ContractError(message)
    return _ended(state, _proof(call, url, answer, state, is_null=following is None))


def _proof(call: Call, url: str, answer: Answer, state: State, *, is_null: bool) -> str:
    """Return what proves that a page without a next one is the last; ContractError if nothing does."""
    pages, count = call.query.pages, len(answer.records)
    what = "Link with rel=next" if pages.by == "link" else pages.next
    proofs = {
        f"{what} is null": is_null,
        f"no {what}, as no page": not count,
        f"no {what}, behind pages that had one": state.followed,
        f"no {what}, and all of the total": state.records == state.least == state.most,
        f"no {what}": pages.end == "absent",
    }
    proof = next((proof for proof, holds in proofs.items() if holds), None)
    if proof is None:
        message = (
            f"{url} has {count} records and no {what}, so nothing proves that there is no other page; "
            f"{fields_of(answer.body)}. Correct `pages`; if this API leaves it out at the end, write `end: absent`"
        )
        raise ContractError(message)
    return proof


def _next(call: Call, url: str, answer: Answer) -> str | Absent | None:
    """Return the URL of the next page, None where the answer says that there is none, ABSENT where it says nothing."""
    pages = call.query.pages
    if pages.by == "link":
        header = answer.headers.get("Link", "")
        target = next_link(header)
        return call.followed(url, target) if target else None if _is_chain(header) else ABSENT
    value: Any = place_in(answer.body, answer.headers, pages.next)
    if isinstance(value, Absent):
        return value
    if value is None or value is False or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int) or (pages.by == "next" and isinstance(value, int)):
        message = f"{url} has {kind_of(value)} at {pages.next}, where `next` says the next page is"
        raise ContractError(message)
    return call.followed(url, str(value)) if pages.by == "next" else call.page(value)


def next_link(header: str) -> str:
    """Return the target of `rel=next` of a header `Link` (RFC 8288), "" if it has none."""
    return next((target for target, rels in links_of(header) if "next" in rels), "")


def _is_chain(header: str) -> bool:
    """Return whether a header says that other pages are before this one, so that it would name the next one."""
    return any({"prev", "previous", "first", "last"} & rels for _, rels in links_of(header))


def links_of(header: str) -> list[tuple[str, set[str]]]:
    """Return the targets of a header `Link`, each with its relations."""
    links = []
    for target, params in _LINK.findall(header):
        rel = _REL.search(params)
        links.append((target, set((rel[1] or rel[2] or "").lower().split()) if rel else set()))
    return links
