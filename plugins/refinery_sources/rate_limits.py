"""Reads for how long an answer asks to send nothing: `Retry-After`, and the headers of limits that are used up.

Whatever a header says, it is 0 seconds to `LONGEST`: a number that is absurd, in the past or none at all closes no host
for longer, and raises nothing.
"""

import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

LONGEST = 86_400.0
"""Seconds that any header asks for at most: the limits of public APIs are per day or shorter."""

_MOMENT, _MILLISECONDS = 1e9, 1e11
"""Numbers from here on are moments (Unix time, in seconds or in milliseconds) where others give seconds."""

_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")
_PARAMETER = re.compile(r"(?:^|[;,])\s*([a-z]+)\s*=\s*([0-9]{1,20}(?:\.[0-9]{1,20})?)")
_ITEM = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^",])+')


def retry_after(value: str) -> float:
    """Return the seconds that a header `Retry-After` asks for (RFC 9110, 10.2.3; decimals too), 0 if it is wrong."""
    number = _number(value)
    return _bounded(_since(value) if number is None else number)


def until_reset(headers: Mapping[str, str]) -> float:
    """Return the seconds until more requests are allowed, if headers say that none is left; 0 otherwise.

    `X-RateLimit-Reset` is a moment with GitHub, seconds with others; `RateLimit-Reset` is seconds (IETF draft
    ratelimit-headers-06). `RateLimit` has both in one header, as `limit=100, remaining=0, reset=5` (draft 07) or as
    `"name";r=0;t=5` (draft 10, the Hugging Face Hub), where `RateLimit-Policy` has the window if `t` is missing.
    """
    asked = [0.0]
    for kind in ("X-RateLimit", "RateLimit"):
        if _number(headers.get(f"{kind}-Remaining", "")) == 0:
            reset = _number(headers.get(f"{kind}-Reset", "")) or 0.0
            now = time.time() if reset > _MOMENT else 0.0
            asked.append((reset / 1000 if reset > _MILLISECONDS else reset) - now)
    windows = {name: values.get("w", 0.0) for name, values in _items(headers.get("RateLimit-Policy", ""))}
    for name, values in _items(headers.get("RateLimit", "")):
        if values.get("r", values.get("remaining")) == 0:
            asked.append(values.get("t", values.get("reset", windows.get(name, 0.0))))
    return _bounded(max(asked))


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST)


def _number(value: str) -> float | None:
    return float(value) if _NUMBER.fullmatch(value := value.strip()) else None


def _since(date: str) -> float:
    """Return the seconds until a date of HTTP, 0 for none."""
    try:
        moment = parsedate_to_datetime(date)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - time.time()
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0


def _items(header: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the limits of a header, each by its name, with its numbers; that of draft 07 is one without a name."""
    items = [item.strip() for item in _ITEM.findall(header)]
    for item in items if any(item.startswith('"') for item in items) else [header]:
        name = item.partition(";")[0].strip() if item.startswith('"') else ""
        yield name, {key: float(value) for key, value in _PARAMETER.findall(item.removeprefix(name))}
