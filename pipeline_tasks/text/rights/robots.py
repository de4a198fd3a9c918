"""Reads robots.txt files (RFC 9309): what they allow to named agents, their preferences of use, and their licenses.

`protego` decides what is allowed. `Content-Usage` lines are those of draft-ietf-aipref-attach-04, in groups and with
paths as `Allow` has them; `Content-Signal` is Cloudflare's form of them (contentsignals.org); `License` is RSL 1.0.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

from protego import Protego

from pipeline_tasks.text.rights.directives import strictest, usage_signals
from pipeline_tasks.text.rights.signals import EVERYBODY, Signal

MOST_BYTES = 500 << 10
"""Bytes of a file that are read (RFC 9309, 2.5)."""

MOST_RULES = 1000
"""Rules of a group among which the one that closes a page is looked for, and preferences of a group."""

SOURCE = "robots.txt"

ALLOWED, DISALLOWED, UNREACHABLE = "allowed", "disallowed", "unreachable"

_FIELD = re.compile(r"\s*([A-Za-z][A-Za-z -]*?)\s*:\s*(.*?)\s*\Z")
_USAGE = re.compile(r"(/\S*|\*\S*)\s+(.*=.*)")
_ESSENTIAL = re.compile(rb"(?i)\s*(?![#\s]|site-?maps?\s*:|\Z)")
_LENIENT = re.compile(r"(?i)\s*(user[- ]?agent|allow|dis+al+ow|diasllow|disallaw)(?:\s*:|\s)\s*(.*?)\s*\Z")
"""Fields in the forms that `protego` takes for them: without a colon, or misspelled."""

_VERSIONED = re.compile(r"([A-Za-z][\w.-]*)/")
_AGENT = "user-agent"
_NOBODY = "-"
"""The name in a group of those who are not asked about, which is that of nobody."""

_ACCESS = frozenset({"allow", "disallow"})
_PREFERENCES = frozenset({"content-usage", "content-signal", "content-signals"})
_RULES = _ACCESS | _PREFERENCES
"""Fields that end the agents of a group. No other does: `Crawl-delay` is not of RFC 9309 (2.2.4)."""

_LICENSE = "license"
_FIELDS = frozenset({_AGENT, _LICENSE}) | _RULES


def essential(body: bytes) -> bytes:
    """Return the bytes of a file that can say something: without comments, blank lines and sitemaps."""
    lines = _bounded(body.replace(b"\r", b"\n")).split(b"\n")
    return b"\n".join(line for line in lines if _ESSENTIAL.match(line))


def _bounded(body: bytes) -> bytes:
    """Return the whole lines of the bytes that are read: the beginning of a path would close more than the path."""
    if len(body) <= MOST_BYTES or body[MOST_BYTES : MOST_BYTES + 1] in b"\r\n":
        return body[:MOST_BYTES]
    return body[: max(body.rfind(b"\n", 0, MOST_BYTES), body.rfind(b"\r", 0, MOST_BYTES), 0)]


class Rule(NamedTuple):
    """A line of a group: its field in lower case, and its value."""

    field: str
    value: str


class Robots:
    """What the bytes of one robots.txt file say to some agents; reading it raises nothing, whatever they are.

    Names of others are not read: a group of thousands of them, with thousands of rules, is one of a few.
    """

    def __init__(self, body: bytes, agents: Sequence[str]) -> None:
        text = _bounded(body).decode("utf-8-sig", "replace").replace("\0", "")
        lines = [*map(_field, text.splitlines())]
        names = {name for field, value in lines if field == _AGENT for name in _agent_names(value)}
        self._group_of = _followed(names, agents)
        read = [*_of_agents(lines, {*self._group_of.values(), EVERYBODY})]
        self._groups, self.licenses = _groups(read)
        self._protego = Protego.parse("\n".join(_access_lines(self._groups)))
        self._first_agents: dict[str | None, str] = {}  # by group that they follow
        for agent, group in self._group_of.items():
            self._first_agents.setdefault(group, agent)

    def group_of(self, agent: str) -> str | None:
        """Return the name of the group that one of the agents follows, in lower case; None if it follows none."""
        return self._group_of[agent]

    def disallowed(self, url: str) -> Iterator[Signal]:
        """Yield for each group of the agents that may not fetch a URL the rule that says so; `agent` is the group's."""
        for group, agent in self._first_agents.items():
            if not _may_fetch(self._protego, url, agent):
                rules = [rule.value for rule in self._groups.get(group or "", ()) if rule.field == "disallow"]
                values = (value for value in rules[:MOST_RULES] if _matches(value, url))
                line = f"Disallow: {max(values, key=len, default='')}".strip()
                yield Signal("robots_txt", line, SOURCE, EVERYBODY if group == EVERYBODY else agent)

    def preferences(self, url: str) -> Iterator[Signal]:
        """Yield what the groups of the agents say of the use of a URL; of lines with paths the longest that fits.

        Lines without a path are of all paths. Of lines whose paths are equally long the strictest counts.
        """
        if not self._has_preferences:
            return
        for group, agent in sorted(self._first_agents.items(), key=lambda pair: pair[0] or ""):
            said: dict[int, list[Signal]] = {}
            for path, text in self._preferences_of(group):
                if not path or _matches(path, url):
                    own = usage_signals(text, SOURCE, EVERYBODY if group == EVERYBODY else agent)
                    said.setdefault(len(path), []).extend(own)
            longest_first = [list(strictest(said[length])) for length in sorted(said, reverse=True)]
            known: set[str] = set()
            for signal in chain.from_iterable(longest_first):
                category = signal.value.partition("=")[0]
                yield from () if category in known else (signal,)
                known.add(category)

    def _preferences_of(self, group: str | None) -> Iterator[tuple[str, str]]:
        said = [rule.value for rule in self._groups.get(group or "", ()) if rule.field in _PREFERENCES]
        for value in said[:MOST_RULES]:
            pathed = _USAGE.fullmatch(value)
            yield (pathed[1], pathed[2]) if pathed else ("", value)

    @cached_property
    def _has_preferences(self) -> bool:
        return any(rule.field in _PREFERENCES for rules in self._groups.values() for rule in rules)


def _field(line: str) -> Rule:
    """Return the field of a line in its one form, and its value; "" for both if it has none."""
    bare = line.partition("#")[0]
    lenient = _LENIENT.match(bare)
    if lenient:
        first = lenient[1][0].lower()
        name, value = {"u": _AGENT, "a": "allow", "d": "disallow"}[first], lenient[2]
        versioned = _VERSIONED.match(value) if name == _AGENT else None
        return Rule(name, versioned[1] if versioned else value)  # RFC 9309 names products without versions
    field = _FIELD.match(bare)
    return Rule(field[1].lower(), field[2]) if field else Rule("", "")


def _followed(names: Iterable[str], agents: Sequence[str]) -> dict[str, str | None]:
    """Return the name of the group that each agent follows: the longest that is its own, else that of everybody."""
    known = {*names}
    longest_first = sorted(known - {EVERYBODY}, key=lambda name: (-len(name), name))
    everybody = EVERYBODY if EVERYBODY in known else None
    return {
        agent: next((name for name in longest_first if _is_token(name, agent.lower())), everybody) for agent in agents
    }


def _of_agents(lines: Iterable[Rule], followed: AbstractSet[str | None]) -> Iterator[Rule]:
    """Yield lines with the names of groups that are followed, and one name of nobody in the place of all others."""
    is_nobody = False
    for field, value in lines:
        if field == _AGENT and followed.isdisjoint(_agent_names(value)):
            if not is_nobody:
                yield Rule(_AGENT, _NOBODY)
            is_nobody = True
        elif field in _FIELDS:
            yield Rule(field, value)
            is_nobody = is_nobody and field in (_AGENT, _LICENSE)


def _is_token(name: str, agent: str) -> bool:
    """Return whether a group is that of an agent: its name is at the start of the agent's, or of a word of it.

    `protego` has it so, too: `bot` is no name of `gptbot`.
    """
    at = agent.find(name) if name else -1
    while at >= 0:
        if at == 0 or not (agent[at - 1].isalnum() or agent[at - 1] in "-_"):
            return True
        at = agent.find(name, at + 1)
    return False


def _groups(lines: Iterable[Rule]) -> tuple[Mapping[str, Sequence[Rule]], tuple[str, ...]]:
    """Return the rules of each agent that is named, in lower case, and the licenses, which are of the whole host."""
    groups: dict[str, list[Rule]] = {}
    licenses: list[str] = []
    current: dict[str, None] = {}
    is_open = False  # whether the last line named an agent, so that another one is of the same group
    for name, value in lines:
        if name == _AGENT:
            current = current if is_open else {}
            current.update(dict.fromkeys(_agent_names(value)))
            for agent in current:
                groups.setdefault(agent, [])
            is_open = True
        elif name in _RULES:
            is_open = False
            for agent in current:
                groups[agent].append(Rule(name, value))
        elif name == _LICENSE and value:
            licenses.append(value)
    return groups, tuple(dict.fromkeys(licenses))


def _access_lines(groups: Mapping[str, Sequence[Rule]]) -> Iterator[str]:
    """Yield the lines of each group that say who may fetch what; one that is empty keeps two groups apart."""
    for agent, rules in groups.items():
        yield from (f"{_AGENT}: {agent}", "disallow:")
        yield from (f"{rule.field}: {rule.value}" for rule in rules if rule.field in _ACCESS)


def _agent_names(value: str) -> list[str]:
    name = value.lower()
    bare = name if name == EVERYBODY else name.replace("*", "")
    return [bare] if bare else []


@lru_cache(maxsize=1 << 14)
def _rule(pattern: str) -> Protego:
    return Protego.parse(f"User-agent: *\nDisallow: {pattern}")


def _matches(pattern: str, url: str) -> bool:
    return bool(pattern) and not _may_fetch(_rule(pattern), url, EVERYBODY)


def _may_fetch(rules: Protego, url: str, agent: str) -> bool:
    try:
        return bool(rules.can_fetch(url, agent))
    except ValueError:  # a host that is none, which no rule is about
        return True
