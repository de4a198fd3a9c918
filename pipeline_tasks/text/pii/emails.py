"""Finds e-mail addresses: a pattern proposes them, the Public Suffix List accepts their domains."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pipeline_tasks.text.pii.candidates import Limits, Span, pattern

EMAIL = r"[A-Za-z0-9._%+'\-]+@[\pL\pN\-]+(?:\.[\pL\pN\-]+)+"
PSEUDONYM = r"^user_[0-9a-f]{12}@example\.com$"

_PUNCTUATION = b"._%+'-"  # a local part may have it, but does not begin with it
_MAX_LOCAL, _MAX_DOMAIN = 64, 253  # RFC 5321 4.5.3.1
_TRIES = 4  # trailing labels removed before a domain is given up


def find_emails(text: bytes, limits: Limits) -> Iterator[Span]:
    """Yield the e-mail addresses of `text`, left to right."""
    if b"@" not in text:
        return
    at = 0
    while (match := pattern(EMAIL).search(text, at)) is not None:
        start, at = match.start(), match.end()
        local, _, domain = match.group().partition(b"@")
        host = _mail_host(domain)
        if host is None or not _is_local_part(local):
            at = start + len(local) + 1  # the rejected domain may be the local part of the next address
            continue
        name = local.lstrip(_PUNCTUATION)
        start += len(local) - len(name)
        at = start + len(name) + 1 + len(host)
        value = text[start:at].decode().lower()
        if not (limits.keep_pseudonyms and pattern(PSEUDONYM).search(value.encode())):
            yield Span(start, at, "email", value)


def _is_local_part(local: bytes) -> bool:
    name = local.lstrip(_PUNCTUATION)
    return 0 < len(name) <= _MAX_LOCAL and not local.endswith(b".") and b".." not in name


@lru_cache(maxsize=65536)
def _mail_host(domain: bytes) -> bytes | None:
    """Return the longest run of leading labels that is a registrable domain, or None."""
    if len(domain) > _MAX_DOMAIN:
        return None
    labels = domain.split(b".")
    for count in range(len(labels), max(1, len(labels) - _TRIES), -1):
        if _is_registrable(b".".join(labels[:count])):
            return b".".join(labels[:count])
    return None


def _is_registrable(domain: bytes) -> bool:
    if any(label.startswith(b"-") or label.endswith(b"-") for label in domain.split(b".")):
        return False
    try:
        ascii_form = domain.decode().lower().encode("idna").decode()
    except UnicodeError:
        return False
    return _suffixes().privatesuffix(ascii_form) is not None


@lru_cache(maxsize=1)
def _suffixes() -> Any:  # noqa: ANN401 -- the list has no stubs
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList(accept_unknown=False)
