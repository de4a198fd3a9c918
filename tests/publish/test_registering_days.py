"""One day more asks a catalog for as much as the days before did, however many there were: work is counted."""

import importlib
from pathlib import Path

import pytest

from tests.chain import PROJECT
from tests.table_catalogs import KINDS

FEW, MANY = 3, 24


@pytest.mark.parametrize("kind", KINDS)
def test_registering_a_day_reads_no_more_behind_many(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(PROJECT / "benchmarks"))
    days = importlib.import_module("table_days").days_of(kind, tmp_path, (FEW, MANY))
    few, many = days[str(FEW)], days[str(MANY)]
    grows = ("read", "deleted")  # of a table's metadata, which names its snapshots
    assert {name: count for name, count in many.items() if name not in grows} == {
        name: count for name, count in few.items() if name not in grows
    }
    assert few["opened" if kind == "iceberg" else "statements"]
