"""What every filter promises, over all files of the folder."""

import importlib
import pkgutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks import filters
from pipeline_tasks.filters import Filter
from pipeline_tasks.stages.filter_quality import FILTERS
from pipeline_tasks.testing.filters import check_filter

NAMES = sorted(module.name for module in pkgutil.iter_modules(filters.__path__) if not module.ispkg)
MODULES = {name: importlib.import_module(f"pipeline_tasks.filters.{name}") for name in NAMES}
CARDS = [module.FILTER for module in MODULES.values() if hasattr(module, "FILTER")]
TEXT = st.text(max_size=120) | st.lists(
    st.sampled_from(["the", "be", " ", " ", "\n", "\n\n", ".", "...", "{", "[1]", "中文", "x", "#", "- "]), max_size=40
).map("".join)
SHARED = ("gopher",)
"""Modules that filters share."""

EVERY = pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)


def test_the_stage_knows_every_file_by_its_name() -> None:
    assert list(FILTERS) == [card.name for card in CARDS] == [name for name in NAMES if name not in SHARED]


@EVERY
@given(texts=st.lists(TEXT | st.none(), max_size=5), words=st.sampled_from([0, 1]))
def test_it_keeps_what_every_filter_promises(card: Filter, texts: list[str | None], words: int) -> None:
    check_filter(card, texts=texts, words=words)
