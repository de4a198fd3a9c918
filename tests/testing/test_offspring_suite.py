"""The suite of stages counts offspring: a stage that makes rows of generated texts passes, and one that loses some fails."""

import pyarrow as pa
import pytest

from pipeline_tasks.schema import N_GENERATED
from pipeline_tasks.testing.stages import check_stage
from tests.offspring import UNFOLDER, WRITER, brought, documents, ids_of

pytestmark = pytest.mark.usefixtures("offspring")

IDS = ids_of(20)


def given() -> pa.Table:
    numbers = [brought(row) for row in IDS]
    return documents(IDS).append_column(N_GENERATED, pa.array(numbers, pa.int64()))


def test_a_stage_that_says_what_documents_bring_passes() -> None:
    assert check_stage(WRITER, documents(IDS)).kept[N_GENERATED].to_pylist() == [*map(brought, IDS)]


@pytest.mark.parametrize("keep", ["both", "generated"])
def test_a_stage_that_makes_documents_of_texts_passes(keep: str) -> None:
    checked = check_stage(UNFOLDER, given(), {"keep": keep})
    assert len(checked.kept) + len(checked.rejects) == len(IDS) + sum(map(brought, IDS))


def test_a_stage_that_loses_offspring_fails() -> None:
    with pytest.raises(AssertionError, match="rows and offspring came in"):
        check_stage(UNFOLDER, given(), {"fault": "lose"})
