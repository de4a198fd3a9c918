"""Says where a redirect may lead, and what of a request goes along.

A redirect is followed within a site: renamed repositories of `api.github.com`, data nodes of `archive.org`. It never
leaves TLS, and leads to the number of a host only where that was asked. What may be secret stays with the first origin.
"""

from collections.abc import Callable, Mapping
from ipaddress import ip_address
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.urls.suffixes import suffixes

HOPS = 4
"""Redirects of one request that are followed."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})

PLAIN = frozenset({"accept", "range", "if-range", "if-none-match"})
"""Headers that go along to another origin: any other may be a secret, under whatever name."""

_PORTS = {"http": 80, "https": 443}

Origin = tuple[str, str, int]
"""Scheme, host and port."""

Leads = Callable[[SplitResult, SplitResult], bool]
"""Whether a request to an address may be led to another."""


def within_site(asked: SplitResult, target: SplitResult) -> bool:
    """Return whether two addresses are of one registered domain, by the public suffix list with its private part."""
    site = _site(asked.hostname or "")
    return bool(site) and site == _site(target.hostname or "") and target.port in (None, asked.port, *_PORTS.values())


def to_any_name(asked: SplitResult, target: SplitResult) -> bool:
    """Return True: for files that are believed by digests that were declared before, wherever their bytes are."""
    del asked, target
    return True


def followed(asked: str, url: str, location: str, leads: Leads) -> str:
    """Return where a redirect of `url` leads, which `asked` has led to; RecipeError if the rule forbids to go there."""
    first, to = urlsplit(asked), _parsed(url, location)
    target = urlunsplit(to)
    is_same = origin_of(target) == origin_of(asked)
    if not to.hostname or to.scheme not in ("https", "http") or "@" in to.netloc:
        reason = "to no address of the web"
    elif to.scheme != "https" and (first.scheme == "https" or urlsplit(url).scheme == "https"):
        reason = "to an address without TLS"
    elif not is_same and _is_number(to.hostname) and not _is_number(first.hostname or ""):
        reason = "to the number of a host"
    elif not is_same and not leads(first, to):
        reason = "to another site"
    else:
        return target
    message = f"{shown(url)} is redirected {reason} ({shown(target)}): not followed; name the right address"
    raise RecipeError(message)


def carried(headers: Mapping[str, str], asked: str, target: str) -> dict[str, str]:
    """Return the headers that go along with a redirect."""
    if origin_of(asked) == origin_of(target):
        return dict(headers)
    return {name: value for name, value in headers.items() if name.lower() in PLAIN}


def origin_of(url: str) -> Origin:
    """Return scheme, host and port of a URL, which a secret is for; ValueError for a port that is none."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)


def shown(url: str) -> str:
    """Return a URL without what may be a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:200]


def _parsed(url: str, location: str) -> SplitResult:
    """Return where a header leads, without its fragment; an address without a host where it is none."""
    try:
        to = urlsplit(urljoin(url, location))._replace(fragment="")
        origin_of(urlunsplit(to))
        return to if location else urlsplit("")
    except ValueError:
        return urlsplit("")


def _site(host: str) -> str | None:
    return None if _is_number(host) else suffixes(private=True).privatesuffix(host)


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return True
