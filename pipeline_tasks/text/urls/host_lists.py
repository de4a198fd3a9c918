"""Reads hosts in the forms in which lists of them are published: a host a line, hosts files, adblock rules and URLs."""

import re
from ipaddress import ip_address

from pipeline_tasks.errors import RecipeError

_PLAIN = re.compile(rb"[0-9A-Za-z._:\[\]\x80-\xff-]+")
_ODD_LINE = re.compile(rb"(?m)^[ \t\r]*(?=[^\s#])(?!" + _PLAIN.pattern + rb"[ \t\r]*$)[^\n]*$")
_REMARK = re.compile(rb"\s+#.*")
_RULE = re.compile(rb"\|\|([^/^$*|\s]+)\^?(?:\$(?:all|doc|document|important)(?:,(?:all|doc|document|important))*)?")
_URL = re.compile(rb"[A-Za-z][0-9A-Za-z+.-]*://([^/?#\s@]+?)(?::[0-9]+)?/?")
_LOCAL = re.compile(rb"(?i)(?:localhost|local|broadcasthost|ip6-[a-z]+|localhost\.localdomain|0\.0\.0\.0)")
_SHOWN = 80


def plain_hosts(content: bytes, path: str) -> bytes:
    """Return a list of hosts with one host a line.

    Hosts files (`0.0.0.0 ads.example.org`), adblock rules of whole hosts (`||ads.example.org^`), `*.example.org`, URLs
    without a path, and remarks behind a host are understood. RecipeError names the first other line: it would block
    nothing.
    """
    return _ODD_LINE.sub(lambda line: _hosts(line[0], content, line.start(), path), content)


def _hosts(line: bytes, content: bytes, start: int, path: str) -> bytes:
    """Return the hosts of a line, each on a line of its own; none of a remark."""
    entry = _REMARK.sub(b"", line.strip())
    if entry.startswith(b"!") or (entry.startswith(b"[") and entry.endswith(b"]")):  # remarks of adblock lists
        return b""
    address, *names = entry.split()
    if names and _is_address(address):
        return b"\n".join(name for name in names if not _LOCAL.fullmatch(name))
    whole = _RULE.fullmatch(entry) or _URL.fullmatch(entry)
    host = whole[1] if whole else entry.removeprefix(b"*.")
    if _PLAIN.fullmatch(host):
        return host
    number = content.count(b"\n", 0, start) + 1
    message = (
        f"word list {path}: line {number} is no host ({entry[:_SHOWN].decode(errors='replace')!r}), so it would block "
        "nothing; write a host, and URLs into a list for `urls`"
    )
    raise RecipeError(message)


def _is_address(text: bytes) -> bool:
    try:
        ip_address(text.decode("ascii", "replace"))
    except ValueError:
        return False
    return True
