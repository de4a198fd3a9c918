"""Finds e-mail addresses: a pattern proposes them, the Public Suffix List accepts their domains.

Beyond the plain form these are found: addresses under a public suffix (`x@nic.in`, `x@iki.fi`), letters beyond ASCII
(RFC 6531), a quoted local part, an address as a domain (`x@[192.0.2.1]`), `%40` (also encoded twice) and the
full-width sign for `@`, and
the written-out forms that leave no doubt: `x [at] y.org`, `x at y dot org`, `x.z AT y.org`.
"""

from collections.abc import Iterator
from functools import lru_cache

from pipeline_tasks.text.pii import mail_signs
from pipeline_tasks.text.pii.candidates import Limits, Span, is_announced, pattern
from pipeline_tasks.text.pii.mail_signs import mail_stretches, written_forms
from pipeline_tasks.text.urls.addresses import canonical_host
from pipeline_tasks.text.urls.suffixes import suffixes

AT = r"(?:@|%(?:25)*40|\x{ff20})"
_LABEL = r"[\pL\pM\pN\-]+"
_LOCAL = r"[\pL\pM\pN._%+'\x{2019}\-&#$~=]+"
_QUOTED = r'"[^"\r\n@<>\s](?:[^"\r\n@<>]{0,60}[^"\r\n@<>\s])?"'
EMAIL = rf"({_LOCAL}|{_QUOTED}){AT}({_LABEL}(?:\.{_LABEL})+|\[[0-9A-Fa-f.:]{{7,45}}\])"

_OPEN, _CLOSE = r" ?[\[({] ?", r" ?[\])}] ?"
_WRITTEN_DOT = rf"{_OPEN}(?i:dot|punkt|\.){_CLOSE}"
_PLAIN_LABEL = r"[A-Za-z0-9\-]+"
IN_BRACKETS = (
    rf"([A-Za-z0-9._%+\-]+){_OPEN}(?i:at|@|\x{{e4}}t|arroba){_CLOSE}"
    rf"({_PLAIN_LABEL}(?:(?:{_WRITTEN_DOT}|\.| (?i:dot) ){_PLAIN_LABEL})+)"
)
"""`jane [at] example [dot] org`, `jane(at)example.org`, `jane (at) example dot org`."""

IN_WORDS = rf"([A-Za-z0-9._%+\-]+) (?i:at) ({_PLAIN_LABEL}(?:(?: (?i:dot) |\.){_PLAIN_LABEL})* (?i:dot) [A-Za-z]+)"
"""`jane at example dot org`; `jane at example.org` is left, as it is as often a place."""

IN_CAPITALS = rf"([A-Za-z0-9._%+\-]+) AT ({_PLAIN_LABEL}(?:(?: DOT |\.){_PLAIN_LABEL})+)"
"""`jane.doe AT example.org`: a name that no word of a sentence is, or one that is announced (`ANNOUNCED`)."""

ANNOUNCED = r"(?i)(?:\be-?mail|\bmail|contact|\bwrite to|\breach|adres)[^@\n]{0,30}$"
_NO_WORD = r"^[A-Za-z0-9]+[._\-+][A-Za-z0-9]|[A-Za-z]\d|\d[A-Za-z]"
_PAGES = (b"www.", b"http")

_WRITTEN_OUT = {
    mail_signs.IN_BRACKETS: IN_BRACKETS,
    mail_signs.IN_WORDS: IN_WORDS,
    mail_signs.IN_CAPITALS: IN_CAPITALS,
}

PSEUDONYM = r"^user_[0-9a-f]{12}@(?:[a-z0-9]{1,16}\.)?example\.com$"

USER_AHEAD = r"://([^\s/?#@:]*:[^\s/?#@]*)$"
"""A user and the beginning of a password in a web address: `https://jane:secret@example.org`."""

_LONGEST_USER = 200

TAG = r"^[\pL\pN._\-]+\+[^=&]*$"
"""A name with a tag, of which `=` is a part (RFC 5321, `atext`)."""

LOGIN = r"^(?:git|hg|svn|cvs|aur|gitea|gitlab|forgejo)$"
LOGIN_AHEAD = r"(?:://|\bssh (?:-\w+ )*)$"
LOGIN_BEHIND = r"^(?::[\w~./\-]|/)"
"""The login of a server of repositories, which is nobody's mailbox: `git@host:owner/name`, `ssh://git@host/`."""

PUBLIC = {
    "lists": (
        r"@(?:(?:lists?|listserv|mailman|groups)\."
        r"|(?:googlegroups\.com|groups\.io|freelists\.org|vger\.kernel\.org)$)"
    ),
    "roles": (
        r"^(?:info|marketing|sales|support|abuse|noc|security|postmaster|hostmaster|usenet|news|webmaster|www|uucp|ftp"
        r"|bugs?|contact|feedback|help|press|privacy|submit)@"
    ),
}
"""Addresses that are published to be written to: of mailing lists by their host, of roles by RFC 2142 and alike."""

_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
"""Scripts whose words touch an address: `\u90ae\u7bb1jane@example.org`."""

_PUNCTUATION = ".%+'\u2019-&#$~="  # a local part may have it, but does not begin with it
_MAX_LOCAL, _MAX_DOMAIN, _MAX_LABEL = 64, 253, 63  # RFC 5321 4.5.3.1
_TRIES = 4  # trailing labels removed before a domain is given up
_WORDS = (r"^[A-Za-z][a-z]*", r"^[A-Z]+")  # a word in one case, which another word may touch


def find_emails(text: bytes, limits: Limits) -> Iterator[Span]:
    """Yield the e-mail addresses of `text`, left to right, those with `@` before those written out."""
    at = 0
    for start, end in mail_stretches(text):
        for span in _with_sign(text, max(at, start), end, limits):
            at = span.end
            yield span
    forms = written_forms(text)
    for form, expression in _WRITTEN_OUT.items():
        if forms & form:
            yield from _written_out(text, expression, limits)


def _with_sign(text: bytes, at: int, stop: int, limits: Limits) -> Iterator[Span]:
    while (match := pattern(EMAIL).search(text, at, stop)) is not None:
        (start, sign), (first, _) = match.span(1), match.span(2)
        host = _mail_host(match.group(2))
        skipped = _local_start(match.group(1))
        user = _user_start(text, start)
        if user is not None:
            at = first if host is None else first + len(host)
            end = sign if host is None else at
            yield Span(user, end, "email", text[user:end].decode().lower())
            continue
        if host is None or skipped is None:
            at = first  # the rejected domain may be the local part of the next address
            continue
        start, at = start + skipped, first + len(host)
        value = f"{text[start:sign].decode()}@{host.decode()}".lower()
        if _is_login(text, start, sign, at) or is_public(value, limits.public_mail):
            continue
        if not (limits.keep_pseudonyms and pattern(PSEUDONYM).search(value.encode())):
            yield Span(start, at, "email", value)


def _user_start(text: bytes, start: int) -> int | None:
    """Return where the user begins whose password in a web address ends behind `start`; None if nothing is one."""
    match = pattern(USER_AHEAD).search(text[max(start - _LONGEST_USER, 0) : start])
    return max(start - _LONGEST_USER, 0) + match.start(1) if match else None


def is_public(value: str, kept: frozenset[str]) -> bool:
    """Return whether an address is of the public ones that are kept: of mailing lists, or of roles."""
    return any(pattern(PUBLIC[which]).search(value.encode()) for which in kept)


def _is_login(text: bytes, start: int, sign: int, end: int) -> bool:
    """Return whether an address is the login of a server of repositories, by what is ahead of it or behind it."""
    if not pattern(LOGIN).search(text[start:sign]):
        return False
    ahead, behind = text[max(start - _LONGEST_USER, 0) : start], text[end : end + 2]
    return bool(pattern(LOGIN_AHEAD).search(ahead) or pattern(LOGIN_BEHIND).search(behind))


def _written_out(text: bytes, expression: str, limits: Limits) -> Iterator[Span]:
    for match in pattern(expression).finditer(text):
        skipped = _local_start(match.group(1))
        domain = _dotted(match.group(2))
        if expression == IN_CAPITALS and not _is_meant(text, match.start(), match.group(1), domain):
            continue
        if skipped is not None and _is_mail_domain(domain):
            start, end = match.start() + skipped, match.end()
            value = f"{match.group(1)[skipped:].decode()}@{domain.decode()}".lower()
            if not is_public(value, limits.public_mail):
                yield Span(start, end, "email", value)


def _is_meant(text: bytes, start: int, local: bytes, domain: bytes) -> bool:
    """Return whether a capital AT is a sign, and not a word of a headline: `READ MORE AT example.org`."""
    if domain.startswith(_PAGES) or local.isupper():
        return False
    return bool(pattern(_NO_WORD).search(local)) or is_announced(text, start, ANNOUNCED)


def _dotted(domain: bytes) -> bytes:
    """Return a written-out domain with dots."""
    return bytes(pattern(rf"{_WRITTEN_DOT}| (?i:dot) ").sub(b".", domain))


# --- The local part --------------------------------------------------------------------------------------------------


def _local_start(local: bytes) -> int | None:
    """Return how many bytes before the local part do not belong to it; None if it is none."""
    if local.startswith(b'"'):
        return 0 if len(local.decode()) <= _MAX_LOCAL else None
    name = local.decode()
    for cut in (_behind_leaders, _behind_words, _behind_key):
        name = cut(name)
    name = name.lstrip(_PUNCTUATION)
    return len(local) - len(name.encode()) if 0 < len(name) <= _MAX_LOCAL else None


def _behind_leaders(name: str) -> str:
    """Return what follows the dot leaders of a directory: `Jane.....jane`."""
    return name if name.endswith("...") else name.rpartition("...")[2]


def _behind_words(name: str) -> str:
    """Return the ASCII end of a name that follows words of a script without spaces."""
    match = pattern(rf"{_UNSPACED}([!-~]+)$").search(name.encode())
    return match.group(1).decode() if match else name


def _behind_key(name: str) -> str:
    """Return what follows `email=`; a tag and a bounce address keep it: `jane+list=x`, `bounce-jane=example.org`."""
    key, _, value = name.rpartition("=")
    is_tag = bool(pattern(TAG).search(key.encode())) or bool(key and _mail_host(value.encode()) == value.encode())
    return name if is_tag else value


# --- The domain ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def _mail_host(domain: bytes) -> bytes | None:
    """Return the longest beginning of `domain` that mail can be sent to, or None."""
    if domain.startswith(b"["):
        return domain if _is_literal(domain) else None
    if len(domain) > _MAX_DOMAIN:
        return None
    labels = domain.split(b".")
    for count in range(len(labels), max(1, len(labels) - _TRIES), -1):
        ahead = b".".join(labels[: count - 1])
        for last in _ends(labels[count - 1]):
            if _is_mail_domain(host := ahead + b"." + last):
                return host
    return None


def _ends(label: bytes) -> Iterator[bytes]:
    """Yield what the last label of a domain may be: all of it, or without the word that touches it.

    `com\u8054\u7cfb`, `com-Jane`, `comPhone`, `com123`: the text around an address often has no space.
    """
    yield label
    for word in _WORDS:
        match = pattern(word).search(label)
        if match and match.end() < len(label):
            yield match.group()


def _is_mail_domain(domain: bytes) -> bool:
    """Return whether a domain is well-formed and under a public suffix, or is one: mail is sent to `gov.uk`, too."""
    labels = domain.decode().lower().split(".")
    if len(labels) < 2 or any(label.startswith("-") or label.endswith("-") or not label for label in labels):
        return False
    return suffixes(private=True, unknown=False).publicsuffix(canonical_host(".".join(labels))) is not None


def _is_literal(domain: bytes) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(domain[1:-1].decode().removeprefix("IPv6:"))
    except ValueError:
        return False
    return True
