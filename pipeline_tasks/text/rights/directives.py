"""Reads what header fields, and `<meta>` of the same words, say of the use of a page.

`X-Robots-Tag` and `<meta name="robots">` have directives: Google's robots meta tag specification, with `noai` and
`noimageai` (DeviantArt, 2022) and `noml` (Mojeek). `Content-Usage` is draft-ietf-aipref-attach-04 (2025-10-28) with the
categories of its vocabulary. `tdm-reservation` and `tdm-policy` are those of TDMRep, a report of a community group of
W3C. `Link` names a license by RFC 8288 and RFC 4946, one of RSL 1.0 (2025-12-10) by its media type.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from pipeline_tasks.text.rights.signals import EVERYBODY, PERMITTED, Signal

DIRECTIVES: Mapping[str, str] = {
    "noai": "noai",
    "noimageai": "noimageai",
    "noml": "noml",
    "noarchive": "noarchive",
    "nocache": "noarchive",
    "nosnippet": "nosnippet",
    "noindex": "noindex",
    "none": "noindex",
}
"""Signals by directive."""

RSL_TYPE = "application/rsl+xml"

_TRAINING = frozenset({"train-ai", "train-genai", "bots", "ai-train"})
"""Categories of use that have training in them; `ai-train` is Cloudflare's Content-Signal (contentsignals.org)."""

_SEARCH = "search"
_RSL_TRAINING = frozenset({"all", "ai-all", "ai-train"})
"""Types of usage of RSL 1.0 that have training in them."""

_RSL_SEARCH = frozenset({"all", "search"})
_NO, _YES = frozenset({"n", "no"}), frozenset({"y", "yes"})
_AGENT = re.compile(r"\s*(\*|[A-Za-z][\w.-]*)\s*:(.*)", re.DOTALL)
_AGENT_AGAIN = re.compile(r"\s*(\*|[A-Za-z][\w.-]*)\s*:((?:\s*[A-Za-z]+)+\s*)")
_BETWEEN = re.compile(r"[\s,;]+")
"""What is written between directives: commas, and blanks by mistake."""

_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
"""Directives that have a value behind a colon, which an agent has its directives behind."""

_LINK = re.compile(r"<([^<>]*)>((?:[^,\"]|\"[^\"]*\")*)")
_PARAMETER = re.compile(r";\s*([\w*-]+)\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))")


def header_signals(fields: Mapping[str, str], agents: AbstractSet[str]) -> Iterator[Signal]:
    """Yield what header fields say (names in lower case, a line for each that was sent) to everybody or to `agents`.

    `agents` are in lower case. What is said to others, as `googlebot: noindex`, is no signal.
    """
    for name, read in _READERS.items():
        if name in fields:
            yield from read(fields, agents)


def _robots_tag(fields: Mapping[str, str], agents: AbstractSet[str]) -> Iterator[Signal]:
    return robots_tag_signals(fields["x-robots-tag"], agents, "http x-robots-tag")


def robots_tag_signals(lines: str, agents: AbstractSet[str], source: str) -> Iterator[Signal]:
    """Yield the signals of lines of `X-Robots-Tag`, each to an agent that it names, or to everybody."""
    for line in lines.split("\n"):
        agent, form = EVERYBODY, _AGENT
        for word in line.split(","):
            named, words = form.fullmatch(word), word
            if named and named[1].lower() not in _VALUED:  # lines may have been joined on their way (RFC 9110, 5.3)
                agent, words = named[1], named[2]
            form = _AGENT_AGAIN
            if agent == EVERYBODY or agent.lower() in agents:
                yield from directive_signals(words, source, agent)


def directive_signals(words: str, source: str, agent: str = EVERYBODY) -> Iterator[Signal]:
    """Yield the signals among directives with commas or blanks between them."""
    for directive in _BETWEEN.split(words.lower()):
        if directive in DIRECTIVES:
            yield Signal(DIRECTIVES[directive], directive, source, agent)


def _content_usage(fields: Mapping[str, str], _: AbstractSet[str]) -> Iterator[Signal]:
    lines = fields["content-usage"].split("\n")
    return strictest(signal for line in lines for signal in usage_signals(line, "http content-usage"))


def strictest(signals: Iterable[Signal]) -> Iterator[Signal]:
    """Yield of each category of use what is said of it first, and a refusal in the place of a permission."""
    said: dict[str, Signal] = {}
    for signal in signals:
        category = signal.value.partition("=")[0]
        if said.setdefault(category, signal).signal == PERMITTED:
            said[category] = signal
    yield from said.values()


def usage_signals(text: str, source: str, agent: str = EVERYBODY, at: str | None = None) -> Iterator[Signal]:
    """Yield what a list of preferences says, `train-ai=n, search=y`: of a category that is given twice the last counts.

    It is read as a dictionary of RFC 9651 whose values are tokens; parameters and other values say nothing.
    """
    preferences = {}
    for part in text.split(","):
        category, _, value = part.partition(";")[0].partition("=")
        preferences[category.strip().lower()] = value.strip().lower()
    for category, value in preferences.items():
        said = f"{category}={value}"
        if category in _TRAINING and value in _NO:
            yield Signal("content_usage", said, source, agent, at)
        elif category == _SEARCH and value in _NO:
            yield Signal("search", said, source, agent, at)
        elif category in _TRAINING and value in _YES:
            yield Signal(PERMITTED, said, source, agent, at)


def _reservation(fields: Mapping[str, str], _: AbstractSet[str]) -> Iterator[Signal]:
    return reservation_signals(fields["tdm-reservation"], fields.get("tdm-policy", ""), "http tdm-reservation")


def reservation_signals(values: str, policy: str, source: str) -> Iterator[Signal]:
    """Yield what `tdm-reservation` says, 1 or 0, and 1 of both; a policy is an address at which terms are.

    Several values are lines, or were joined on their way.
    """
    said = {value.strip() for value in re.split(r"[,\n]", values)}
    if "1" in said:
        yield Signal("tdm_reservation", f"1; policy {policy.strip()}" if policy.strip() else "1", source)
    elif "0" in said:
        yield Signal(PERMITTED, "tdm-reservation=0", source)


def rsl_signals(prohibited: Iterable[str], source: str) -> Iterator[Signal]:
    """Yield an RSL document with the uses that it prohibits, and what it refuses by them."""
    uses = [*dict.fromkeys(use.strip().lower() for use in prohibited)]
    yield Signal("rsl", f"prohibits {','.join(uses)}" if uses else "embedded", source)
    for signal, refused in (("content_usage", _RSL_TRAINING), (_SEARCH, _RSL_SEARCH)):
        yield from (Signal(signal, f"rsl prohibits {use}", source) for use in uses if use in refused)


def _links(fields: Mapping[str, str], _: AbstractSet[str]) -> Iterator[Signal]:
    for target, parameters in _LINK.findall(fields["link"]):
        named: dict[str, str] = {}
        for name, quoted, bare in _PARAMETER.findall(parameters):
            named.setdefault(name.lower(), quoted or bare)  # RFC 8288, 3.3: the first counts
        if "license" in named.get("rel", "").lower().split():
            yield license_signal(target, named.get("type", ""), "http link")


def license_signal(target: str, media_type: str, source: str) -> Signal:
    """Return the signal of a link to a license."""
    is_rsl = media_type.partition(";")[0].strip().lower() == RSL_TYPE
    return Signal("rsl" if is_rsl else "license", target.strip(), source)


_READERS: Mapping[str, Callable[[Mapping[str, str], AbstractSet[str]], Iterator[Signal]]] = {
    "x-robots-tag": _robots_tag,
    "content-usage": _content_usage,
    "tdm-reservation": _reservation,
    "link": _links,
}
