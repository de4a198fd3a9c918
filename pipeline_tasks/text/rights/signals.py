"""The signals that a publisher can give about the use of a page, and the one form that all of them have."""

from collections.abc import Iterable
from typing import NamedTuple

OPT_OUTS = (
    "robots_txt",  # RFC 9309: a named agent may not fetch the page
    "content_usage",  # aipref `train-ai=n`, Cloudflare's `ai-train=no`, and `prohibits` of RSL
    "tdm_reservation",  # TDMRep: rights are reserved for text and data mining
    "noai",  # DeviantArt's directive of 2022
    "noml",  # Mojeek's directive: no machine learning
    "noimageai",  # as `noai`, of images
    "noarchive",  # and `nocache`, which Bing takes for limits of training
    "nosnippet",
    "noindex",  # and `none`
    "search",  # aipref `search=n`: no search, which is no training
)
"""Signals that reserve a use, the strongest first: of several it is the first that is a row's reason."""

OTHERS = (
    "rsl",  # RSL 1.0: a license to be read, which may permit or prohibit
    "license",  # a link to any other license
    "permitted",  # what is expressly allowed: `train-ai=y`, `tdm-reservation: 0`
)
"""Signals that are told, and reserve nothing by themselves."""

PERMITTED = OTHERS[-1]
SIGNALS = (*OPT_OUTS, *OTHERS)

EVERYBODY = "*"
"""The agent of what is said to all."""

LONGEST = 200
"""Characters of a value."""

MOST = 32
"""Signals of one page that are kept."""


class Signal(NamedTuple):
    """A row of `schema.RIGHT`."""

    signal: str
    value: str
    source: str
    agent: str = EVERYBODY
    at: str | None = None


def bounded(signals: Iterable[Signal]) -> list[Signal]:
    """Return the first `MOST` different signals, the strongest first, with values of at most `LONGEST` characters."""
    short = (signal._replace(value=signal.value[:LONGEST], agent=signal.agent[:LONGEST]) for signal in signals)
    return sorted(dict.fromkeys(short), key=lambda signal: SIGNALS.index(signal.signal))[:MOST]
