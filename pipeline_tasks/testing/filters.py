"""The suite of filters: finite signals for any text, the same in any company, and rules that reject by their bounds."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipeline_tasks.filters import Computed, Filter, fails
from pipeline_tasks.schema import REASON_PATTERN

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

TEXTS: tuple[str | bytes | None, ...] = (
    None,
    "",
    "A calm text about a garden and its soil.\n\nIt has two paragraphs.",
    "no end of a sentence ... { [1] #",
    "中文没有空格。ภาษาไทย",
    " \t\n\r\x0b\x0c\x1c\x85\xa0\u2028\u3000\ufeff\0",
    "x" * 300,
    "- a list\n" * 20,
    b"\xff\xc3 no UTF-8 \xe2\x80",
    b"\xed\xa0\xbd\xed\xb8\x80",
    b"\xf0\x9f\x98",
)
"""Texts as a crawl has them, some of which are no UTF-8."""

LANGUAGES = ("en", "de", "zh", "ja", "th", "ko", None)


def check_filter(
    card: Filter,
    failing: Mapping[str, str] | None = None,
    texts: Sequence[str | bytes | None] = TEXTS,
    *,
    limits: "DataclassInstance | None" = None,
    words: int = 0,
) -> None:
    """Raise AssertionError unless a filter keeps what every filter promises, for these texts.

    `failing` has a text for each rule, by the rule's `why`, that fails it by its bound; None checks no bounds. `limits`
    are the card's own without any, and `words` is a rule of `text.words`.
    """
    given = card.limits() if limits is None else limits
    _check_card(card)
    _check_signals(card, texts, given, words)
    for why, text in (failing or {}).items():
        assert why in {rule.why for rule in card.rules}, f"{card.name} has no rule {why!r}"
        _check_fails(card, why, text, given, words)
    if failing is not None:
        left = [rule.why for rule in card.rules if rule.why not in failing]
        assert not left, f"{card.name}: no text fails {', '.join(left)}"


def _check_card(card: Filter) -> None:
    """Rules name signals, limits and reasons that there are; shares are signals."""
    limits = {limit.name for limit in fields(card.limits)}
    assert card.rules, f"{card.name} has no rules"
    assert set(card.shares) <= set(card.signals), f"{card.name}: shares that are no signals"
    for rule in card.rules:
        assert rule.signal in card.signals, f"{card.name}: {rule.why} compares {rule.signal}, which is no signal"
        assert rule.limit in limits, f"{card.name}: {rule.why} has the limit {rule.limit}, which is no field"
        assert re.match(REASON_PATTERN, card.reason(rule)), f"{card.reason(rule)!r} is no reason"


def _check_signals(card: Filter, texts: Sequence[str | bytes | None], limits: "DataclassInstance", words: int) -> None:
    """Signals are finite, not negative, and the same for a text alone, at another place and beside others."""
    rows = [(text, LANGUAGES[len(text or "") % len(LANGUAGES)]) for text in texts]
    whole = _computed(card, rows, limits, words)
    assert whole.signals.shape == (len(rows), len(card.signals)), f"{card.name}: shape {whole.signals.shape}"
    assert len(whole.texts) == len(rows), f"{card.name}: {len(whole.texts)} texts of {len(rows)}"
    odd = np.flatnonzero(~np.isfinite(whole.signals).all(axis=1) | (whole.signals < 0).any(axis=1)).tolist()
    assert not odd, f"{card.name}: {rows[odd[0]]!r} has {whole.signals[odd[0]]}; signals are finite and not negative"
    high = [name for name in card.shares if (whole.signals[:, card.signals.index(name)] > 1).any()]
    assert not high, f"{card.name}: {', '.join(high)} are shares, and above 1 for one of {texts!r}"
    turned = _computed(card, rows[::-1], limits, words)
    _require_same(card, rows, whole, Computed(turned.signals[::-1], turned.texts[::-1]), "in another order")
    alone = [_computed(card, [row], limits, words) for row in rows]
    if alone:
        parts = Computed(np.vstack([own.signals for own in alone]), pa.concat_arrays([own.texts for own in alone]))
        _require_same(card, rows, whole, parts, "alone")
    empty = _computed(card, [(None, "en"), ("", "en")], limits, words).signals
    assert empty[0].tolist() == empty[1].tolist(), f"{card.name}: no text has {empty[0]}, and an empty one {empty[1]}"
    if card.cuts is not None:
        column = column_of_bytes([text for text, _ in rows])
        marks, size = len(card.cuts.trace(column, whole.removed, limits)), column.cast(pa.large_binary())
        expected = sum(len(text or b"") for text in size.to_pylist())
        assert marks == expected, f"{card.name}: {marks} marks of cuts for {expected} bytes"


def _require_same(
    card: Filter, rows: Sequence[tuple[str | bytes | None, str | None]], whole: Computed, other: Computed, how: str
) -> None:
    binary = [computed.texts.cast(pa.large_binary()).to_pylist() for computed in (whole, other)]
    for row, *own in zip(rows, whole.signals.tolist(), other.signals.tolist(), *binary, strict=True):
        assert own[0] == own[1], f"{card.name}: {row!r} has {own[0]}, and {how} {own[1]}"
        assert own[2] == own[3], f"{card.name}: of {row!r} is left {own[2]!r}, and {how} {own[3]!r}"


def _check_fails(card: Filter, why: str, text: str, limits: "DataclassInstance", words: int) -> None:
    """A text fails a rule by its bound, and passes it by its own signal as the bound, which changes no signal."""
    rule = next(rule for rule in card.rules if rule.why == why)
    signals = _computed(card, [(text, "en")], limits, words).signals
    value, bound = signals[:, card.signals.index(rule.signal)], getattr(limits, rule.limit)
    assert fails(rule, value, np.array([bound], np.float64))[0], f"{why}: {text!r} has {value[0]}, allowed is {bound}"
    moved = replace(limits, **{rule.limit: type(bound)(value[0])})
    again = _computed(card, [(text, "en")], moved, words).signals
    assert again.tolist() == signals.tolist(), f"{card.name}: {rule.limit} is a bound, and changes signals"


def _computed(
    card: Filter, rows: Sequence[tuple[str | bytes | None, str | None]], limits: "DataclassInstance", words: int
) -> Computed:
    languages = pa.array([language for _, language in rows], pa.string())
    return card.compute_signals(column_of_bytes([text for text, _ in rows]), languages, words, limits)


def column_of_bytes(texts: Sequence[str | bytes | None]) -> pa.Array:
    """Return texts as a string column, which Arrow takes on trust: whether bytes are UTF-8 is not looked at."""
    raw = [text.encode() if isinstance(text, str) else text for text in texts]
    binary = pa.array(raw, pa.large_binary())
    return pa.Array.from_buffers(pa.large_string(), len(binary), binary.buffers(), binary.null_count)
