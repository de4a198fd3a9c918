"""Finds e-mail addresses and IPv4 addresses the slow and obvious way, to compare the patterns with."""

import ipaddress
import string

LOCAL = string.ascii_letters + string.digits + "_+"
HOST = string.ascii_lowercase + "."


def email_around(text: str) -> list[str]:
    """Return the address around the only `@` of `text`, read letter by letter in both directions."""
    sign = text.index("@")
    start, end = sign, sign + 1
    while start and text[start - 1] in LOCAL:
        start -= 1
    while end < len(text) and text[end] in HOST:
        end += 1
    while text[start] == "+":
        start += 1
    return [text[start:end]] if start < sign else []


def ipv4s(text: str) -> list[str]:
    """Return the public IPv4 addresses of a text of digits, dots, letters and spaces."""
    return [word for word in text.split() if _is_ipv4(word)]


def _is_ipv4(word: str) -> bool:
    try:
        address = ipaddress.IPv4Address(word)
    except ValueError:
        return False
    return address.is_global and not address.is_multicast and max(address.packed) >= 20
