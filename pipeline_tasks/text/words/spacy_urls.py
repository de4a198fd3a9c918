"""Recognize the URLs and mail addresses that spaCy's tokenizer does not cut at infixes.

The rules are those of `URL_PATTERN` in explosion/spaCy 3.8 `spacy/lang/tokenizer_exceptions.py` (MIT).
"""

from pipeline_tasks.text.base.ascii import (
    AT_SIGN,
    COLON,
    DOT,
    HASH,
    HYPHEN,
    PLUS,
    QUESTION_MARK,
    SLASH,
    UNDERSCORE,
    ZERO,
    is_alphanumeric,
    is_digit,
    starts_character,
)
from pipeline_tasks.text.base.characters import LOWER, WORD, class_of, decode
from pipeline_tasks.text.base.compiled import inlined
from pipeline_tasks.text.words.spacy_affixes import class_at

HOST_FIRST, HOST_LAST = 0xA1, 0xFFFF
"""Code points beyond ASCII that a host may have."""

LABEL_LONGEST, DOMAIN_SHORTEST, DOMAIN_LONGEST = 64, 2, 63
"""Code points of a label, and of the top-level domain."""

PORT_SHORTEST, PORT_LONGEST = 2, 5

OCTET_LONGEST = 3
OCTETS, LAST_OCTET = 4, 3
FIRST_HIGHEST, OCTET_HIGHEST, LAST_HIGHEST = 223, 255, 254
PRIVATE_FIRST = (10, 127)
PRIVATE_PAIRS = (0xA9FE, 0xC0A8)
PRIVATE_RANGE = (0xAC10, 0xAC1F)
"""Networks that are not public: 10.*, 127.*; 169.254.*, 192.168.*; 172.16.* to 172.31.*."""


@inlined
def is_url(data, begin, end, index, flags):
    """Return whether data[begin:end] is a URL or mail address: a host, or one after `scheme://` or `name@`."""
    if _is_host(data, begin, end, index, flags):
        return True
    scheme = _in_scheme(data, begin, end, index, flags)
    _, width = decode(data, begin, end)
    second = begin + width
    for at in range(begin + 1, end - 3):
        if not starts_character(data[at]):
            continue
        named = scheme and at > second and data[at] == COLON and data[at + 1] == SLASH and data[at + 2] == SLASH
        if named and _is_host(data, at + 3, end, index, flags):
            return True
        if data[at] == AT_SIGN and _is_host(data, at + 1, end, index, flags):
            return True
        scheme &= _in_scheme(data, at, end, index, flags)
    return False


@inlined
def _in_scheme(data, at, end, index, flags):
    """Return whether the character at `at` may be part of a scheme."""
    return class_at(data, at, end, index, flags) & WORD != 0 or data[at] in (PLUS, HYPHEN, DOT)


@inlined
def _is_host(data, begin, end, index, flags):
    """Return whether data[begin:end] is a public IP number or a host of two labels or more, with any port and path."""
    address = _address_end(data, begin, end)
    if address and _is_rest(data, address, end):
        return True
    at, label, labels, lower, size = begin, begin, 0, True, 0
    while at < end:
        code, width = decode(data, at, end)
        if code == DOT:
            if not _is_label(data, label, at) or size > LABEL_LONGEST:
                return False
            labels, label, lower, size = labels + 1, at + 1, True, 0
        elif _in_host(code):
            lower &= (class_of(index, flags, code) & LOWER) != 0
            size += 1
        else:
            break
        at += width
    return labels > 0 and lower and DOMAIN_SHORTEST <= size <= DOMAIN_LONGEST and _is_rest(data, at, end)


@inlined
def _in_host(code):
    """Return whether a code point may be part of a label."""
    return is_alphanumeric(code) or HOST_FIRST <= code <= HOST_LAST or code in (HYPHEN, UNDERSCORE)


@inlined
def _is_label(data, begin, end):
    """Return whether data[begin:end] is not empty and neither begins nor ends with a hyphen or underscore."""
    return end > begin and data[end - 1] not in (HYPHEN, UNDERSCORE) and data[begin] not in (HYPHEN, UNDERSCORE)


@inlined
def _is_rest(data, at, end):
    """Return whether data[at:end] may follow a host: nothing, a port, a path, or both."""
    if at < end and data[at] == COLON:
        port = at + 1
        while port < end and is_digit(data[port]):
            port += 1
        if not PORT_SHORTEST <= port - at - 1 <= PORT_LONGEST:
            return False
        at = port
    return at == end or data[at] in (SLASH, QUESTION_MARK, HASH)


@inlined
def _address_end(data, begin, end):
    """Return where the public IP number that data[begin:end] begins with ends, 0 if it begins with none."""
    at, network = begin, 0
    for place in range(OCTETS):
        start = at
        value, at = _octet(data, at, end)
        if at == start or not _is_octet(value, at - start, data[start] == ZERO, place):
            return 0
        if place < LAST_OCTET and (at == end or data[at] != DOT):
            return 0
        network = network << 8 | value if place < 2 else network
        at += place < LAST_OCTET
    return 0 if _is_private(network) else at


@inlined
def _octet(data, at, end):
    """Return (value, end) of the number of at most three digits at `at`."""
    start, value = at, 0
    while at < end and at - start < OCTET_LONGEST and is_digit(data[at]):
        value = value * 10 + data[at] - ZERO
        at += 1
    return value, at


@inlined
def _is_octet(value, digits, padded, place):
    """Return whether the number at `place` may be part of a public address; the first and last have no leading zero."""
    outer = place in (0, LAST_OCTET)
    if padded and (outer or digits == OCTET_LONGEST):
        return False
    return value <= (FIRST_HIGHEST if place == 0 else (LAST_HIGHEST if place == LAST_OCTET else OCTET_HIGHEST))


@inlined
def _is_private(network):
    """Return whether the first two numbers of an address belong to a network that is not public."""
    pair = network in PRIVATE_PAIRS or PRIVATE_RANGE[0] <= network <= PRIVATE_RANGE[1]
    return pair or network >> 8 in PRIVATE_FIRST
