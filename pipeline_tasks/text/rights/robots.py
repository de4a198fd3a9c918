"""Reads robots.txt files (RFC 9309): what they allow to named agents, their preferences of use, and their licenses.

`protego` decides what is allowed. `Content-Usage` lines are those of draft-ietf-aipref-attach-04, in groups and with
paths as `Allow` has them; `Content-Signal` is Cloudflare's form of them (contentsignals.org); `License` is RSL 1.0.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from protego import Protego

from pipeline_tasks.text.rights.directives import usage_signals
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
_AGENTS = frozenset({"user-agent", "useragent", "user agent"})
_RULES = frozenset({"allow", "disallow", "content-usage", "content-signal", "crawl-delay"})
_PREFERENCES = frozenset({"content-usage", "content-signal"})


def essential(body: bytes) -> bytes:
    """Return the bytes of a file that can say something: without comments, blank lines and sitemaps."""
    lines = body[:MOST_BYTES].replace(b"\r", b"\n").split(b"\n")
    return b"\n".join(line for line in lines if _ESSENTIAL.match(line))


class Rule(NamedTuple):
    """A line of a group: its field in lower case, and its value."""

    field: str
    value: str


class Robots:
    """One robots.txt file, as its bytes say it; reading it raises nothing, whatever they are."""

    def __init__(self, body: bytes) -> None:
        text = body[:MOST_BYTES].decode("utf-8-sig", "replace").replace("\0", "")
        self._protego = Protego.parse(text)
        self._groups, self.licenses = _groups(text.splitlines())
        self._named: dict[str, str | None] = {}

    def group_of(self, agent: str) -> str | None:
        """Return the name of the group that an agent follows, in lower case; None if it follows none."""
        if agent not in self._named:
            named = next((name for name in self._longest_first if _is_token(name, agent.lower())), None)
            self._named[agent] = named or (EVERYBODY if EVERYBODY in self._groups else None)
        return self._named[agent]

    def disallowed(self, url: str, agents: Sequence[str]) -> Iterator[Signal]:
        """Yield for each group of `agents` that may not fetch a URL the rule that says so; `agent` is the group's."""
        seen: set[str | None] = set()
        for agent in agents:
            group = self.group_of(agent)
            if group not in seen and not _may_fetch(self._protego, url, agent):
                rules = [rule.value for rule in self._groups.get(group or "", ()) if rule.field == "disallow"]
                values = (value for value in rules[:MOST_RULES] if _matches(value, url))
                line = f"Disallow: {max(values, key=len, default='')}".strip()
                yield Signal("robots_txt", line, SOURCE, EVERYBODY if group == EVERYBODY else agent)
            seen.add(group)

    def preferences(self, url: str, agents: Sequence[str]) -> Iterator[Signal]:
        """Yield what the groups of `agents` say of the use of a URL; of lines with paths the longest that fits counts.

        Lines without a path are of all paths.
        """
        if not self._has_preferences:
            return
        named = {self.group_of(agent): agent for agent in reversed(agents)}
        for group, agent in sorted(named.items(), key=lambda pair: pair[0] or ""):
            said: dict[str, tuple[int, Signal]] = {}
            for path, text in self._preferences_of(group):
                if path and not _matches(path, url):
                    continue
                for signal in usage_signals(text, SOURCE, EVERYBODY if group == EVERYBODY else agent):
                    category = signal.value.partition("=")[0]
                    if category not in said or len(path) >= said[category][0]:
                        said[category] = len(path), signal
            yield from (signal for _, signal in said.values())

    def _preferences_of(self, group: str | None) -> Iterator[tuple[str, str]]:
        said = [rule.value for rule in self._groups.get(group or "", ()) if rule.field in _PREFERENCES]
        for value in said[:MOST_RULES]:
            pathed = _USAGE.fullmatch(value)
            yield (pathed[1], pathed[2]) if pathed else ("", value)

    @cached_property
    def _longest_first(self) -> list[str]:
        return sorted((name for name in self._groups if name != EVERYBODY), key=lambda name: (-len(name), name))

    @cached_property
    def _has_preferences(self) -> bool:
        return any(rule.field in _PREFERENCES for rules in self._groups.values() for rule in rules)


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


def _groups(lines: Iterable[str]) -> tuple[Mapping[str, Sequence[Rule]], tuple[str, ...]]:
    """Return the rules of each agent that is named, in lower case, and the licenses, which are of the whole host."""
    groups: dict[str, list[Rule]] = {}
    licenses: list[str] = []
    current: list[str] = []
    is_open = False  # whether the last line named an agent, so that another one is of the same group
    for line in lines:
        field = _FIELD.match(line.partition("#")[0])
        if field is None:
            continue
        name, value = field[1].lower(), field[2]
        if name in _AGENTS:
            current = [*(current if is_open else []), *_agent_names(value)]
            for agent in current:
                groups.setdefault(agent, [])
            is_open = True
        elif name in _RULES:
            is_open = False
            for agent in dict.fromkeys(current):
                groups[agent].append(Rule(name, value))
        elif name == "license" and value:
            licenses.append(value)
    return groups, tuple(dict.fromkeys(licenses))


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
