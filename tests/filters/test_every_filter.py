"""What every filter promises, over all files of the folder."""

import importlib
import pkgutil
import re
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks import filters
from pipeline_tasks.filters import Computed, Filter
from pipeline_tasks.schema import REASON_PATTERN
from pipeline_tasks.stages.filter_quality import FILTERS

NAMES = sorted(module.name for module in pkgutil.iter_modules(filters.__path__) if not module.ispkg)
MODULES = {name: importlib.import_module(f"pipeline_tasks.filters.{name}") for name in NAMES}
CARDS = [module.FILTER for module in MODULES.values() if hasattr(module, "FILTER")]
TEXT = st.text(max_size=120) | st.lists(
    st.sampled_from(["the", "be", " ", " ", "\n", "\n\n", ".", "...", "{", "[1]", "中文", "x", "#", "- "]), max_size=40
).map("".join)
ROWS = st.lists(st.tuples(TEXT | st.none(), st.sampled_from(["en", "de", "zh", "th", None])), max_size=5)
SHARED = ("gopher",)
"""Modules that filters share."""

EVERY = pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)


def computed(card: Filter, rows: list[tuple[str | None, str | None]], words: int = 0) -> Computed:
    texts = pa.array([text for text, _ in rows], pa.large_string())
    return card.compute_signals(texts, pa.array([language for _, language in rows], pa.string()), words, card.limits())


def test_the_stage_knows_every_file_by_its_name() -> None:
    assert list(FILTERS) == [card.name for card in CARDS] == [name for name in NAMES if name not in SHARED]


@EVERY
def test_rules_name_signals_limits_and_fitting_reasons(card: Filter) -> None:
    limits = {limit.name for limit in fields(card.limits)}
    assert card.rules
    assert set(card.shares) <= set(card.signals)
    for rule in card.rules:
        assert rule.signal in card.signals
        assert rule.limit in limits
        assert re.match(REASON_PATTERN, card.reason(rule))


@EVERY
@given(rows=ROWS, words=st.sampled_from([0, 1]))
def test_one_finite_row_of_signals_per_text(
    card: Filter, rows: list[tuple[str | None, str | None]], words: int
) -> None:
    signals, texts, _ = computed(card, rows, words)
    assert signals.shape == (len(rows), len(card.signals))
    assert len(texts) == len(rows)
    assert np.isfinite(signals).all()
    assert (signals >= 0).all()


@EVERY
@given(rows=ROWS, at=st.integers(0, 5))
def test_halves_are_the_whole(card: Filter, rows: list[tuple[str | None, str | None]], at: int) -> None:
    whole, first, second = computed(card, rows), computed(card, rows[:at]), computed(card, rows[at:])
    assert np.vstack([first.signals, second.signals]).tolist() == whole.signals.tolist()
    assert [*first.texts.to_pylist(), *second.texts.to_pylist()] == whole.texts.to_pylist()


@EVERY
@given(rows=ROWS, seed=st.randoms(use_true_random=False))
def test_permuted_rows_permute_signals(card: Filter, rows: list[tuple[str | None, str | None]], seed: object) -> None:
    order = list(range(len(rows)))
    seed.shuffle(order)  # type: ignore[attr-defined]
    whole, permuted = computed(card, rows), computed(card, [rows[at] for at in order])
    assert permuted.signals.tolist() == whole.signals[order].tolist()
    assert permuted.texts.to_pylist() == [whole.texts[at].as_py() for at in order]


@EVERY
def test_nulls_and_empty_texts_have_the_same_signals(card: Filter) -> None:
    signals = computed(card, [(None, "en"), ("", "en")]).signals
    assert signals[0].tolist() == signals[1].tolist()
