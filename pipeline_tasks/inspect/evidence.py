"""Takes the evidence of a rejected row apart: rules with value and bound, else facts, of which some are ids or URLs."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pipeline_tasks.ask.written import figure

MOST_FACTS = 12
"""Facts of an evidence that are shown."""

MOST_CHARACTERS = 300
"""Characters of a fact that are shown."""

ID = re.compile("[0-9a-f]{32}")
"""The id of a document."""

URL = "url"


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that a row fails, its value and the bound, which it is `above`, `below` or only not equal to ("")."""

    rule: str
    value: object
    bound: object
    side: Literal["above", "below", ""]


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact of an evidence. An `id` is of a document of `snapshot`, "" for that of the row."""

    name: str
    value: object
    kind: Literal["id", "url", "plain"] = "plain"
    snapshot: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a row: rules, or facts, or the text as it is stored if it is neither."""

    rules: Sequence[BrokenRule] = ()
    facts: Sequence[Fact] = ()
    text: str = ""


def evidence_of(stored: str | None) -> Evidence:
    """Return the parts of an evidence as it is stored."""
    if not stored:
        return Evidence()
    try:
        parsed = json.loads(stored)
    except ValueError:
        return Evidence(text=stored[:MOST_CHARACTERS])
    if isinstance(parsed, list) and parsed and all(isinstance(part, dict) and "rule" in part for part in parsed):
        return Evidence(rules=[_rule(part) for part in parsed[:MOST_FACTS]])
    if isinstance(parsed, dict):
        return Evidence(facts=[*_facts("", parsed, "")][:MOST_FACTS])
    return Evidence(text=stored[:MOST_CHARACTERS])


def _rule(part: Mapping[str, Any]) -> BrokenRule:
    value, bound = part.get("value"), part.get("bound")
    side: Literal["above", "below", ""] = ""
    if isinstance(value, int | float) and isinstance(bound, int | float) and value != bound:
        side = "above" if value > bound else "below"
    return BrokenRule(str(part["rule"]), _short(value), _short(bound), side)


def _facts(prefix: str, parts: Mapping[str, Any], snapshot: str) -> Iterator[Fact]:
    """Yield the leaves of an evidence, names joined by dots; ids are of the snapshot that is named beside them."""
    named = str(parts.get("snapshot") or snapshot)
    for name, value in parts.items():
        if isinstance(value, Mapping):
            yield from _facts(f"{prefix}{name}.", value, named)
        elif isinstance(value, str) and ID.fullmatch(value):
            yield Fact(f"{prefix}{name}", value, "id", named)
        elif isinstance(value, str) and value and name == URL:
            yield Fact(f"{prefix}{name}", value, "url")
        else:
            yield Fact(f"{prefix}{name}", _short(value))


def _short(value: object) -> object:
    """Return a number as it is, and the beginning of all else as text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return (value if isinstance(value, str) else json.dumps(value))[:MOST_CHARACTERS]


def evidence_text(stored: str | None) -> str:
    """Return an evidence in one line: each rule with its value and bound, or the facts, but those of a winner."""
    known = evidence_of(stored)
    rules = [f"{each.rule} {said(each.value)} {_side(each.side, said(each.bound))}" for each in known.rules]
    facts = [f"{each.name} {said(each.value)}" for each in known.facts if not each.name.startswith("winner")]
    return "; ".join([*rules, *facts, *filter(None, [known.text])])


def _side(side: str, bound: str) -> str:
    return f"is {side} {bound}" if side else f"where {bound} is asked for"


def said(value: object) -> str:
    """Return a value of an evidence for a person."""
    if value is None or isinstance(value, bool):
        return {None: "-", True: "yes", False: "no"}[value]
    return figure(value) if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
