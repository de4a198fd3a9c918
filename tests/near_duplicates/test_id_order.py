"""Documents in order of their ids: what is out of place is refused by its stage and document, wherever it is looked for."""

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from pipeline_tasks.errors import ContractError
from pipeline_tasks.near_duplicates.id_order import in_id_order, require_met
from pipeline_tasks.stage import Batches
from pipeline_tasks.stages import cut_templates, dedup_paragraphs, dedup_substrings
from tests.documents import documents

WAY_OUT = "run dedup_exact before, with the same `buckets`"


def batches(*ids: list[str]) -> Batches:
    yield from (pa.record_batch({"id": pa.array(names, pa.string())}) for names in ids)


def test_documents_in_order_pass_as_they_are() -> None:
    given = [["a", "b"], [], ["c"]]
    assert [batch.column("id").to_pylist() for batch in in_id_order(batches(*given), "toy")] == given


@pytest.mark.parametrize("ids", [[["b", "a"]], [["a", "a"]], [["b"], ["a"]], [["b"], [], ["b"]]])
def test_one_that_is_behind_or_there_twice_is_refused(ids: list[list[str]]) -> None:
    """Over the end of a batch, too."""
    before, after = [name for batch in ids for name in batch][-2:]
    said = f"^toy: document {after} is not in id order behind {before}, or there twice; {WAY_OUT}"
    with pytest.raises(ContractError, match=said):
        list(in_id_order(batches(*ids), "toy"))


def test_rows_that_no_document_met_are_refused() -> None:
    require_met("toy", 3, 3)
    with pytest.raises(ContractError, match=f"^toy: documents are not in their buckets; {WAY_OUT}"):
        require_met("toy", 2, 3)


@pytest.mark.parametrize(
    ("stage", "kernel"),
    [
        ("dedup_paragraphs", partial(dedup_paragraphs.distinct_parts, params=dedup_paragraphs.Params())),
        ("dedup_substrings", partial(dedup_substrings.batch_keys, params=dedup_substrings.Params())),
    ],
)
def test_a_stage_that_needs_the_order_says_that_it_is_not_there(
    stage: str, kernel: Callable[[Batches], Batches]
) -> None:
    table = documents([f"a text {number} " * 30 for number in range(4)]).sort_by([("id", "descending")])
    with pytest.raises(ContractError, match=f"^{stage}: document .* is not in id order"):
        list(kernel(iter(table.to_batches())))


def test_a_line_that_came_back_to_another_bucket_is_refused() -> None:
    table = documents(["a text"])
    found = cut_templates.COUNTED.empty_table().from_pylist(
        [{"hash": 1, "check": 1, "page": 1, "id": "nobody", "total": 9}], schema=cut_templates.COUNTED
    )
    with pytest.raises(ContractError, match=r"^cut_templates: documents are not in their buckets"):
        list(cut_templates.cut(iter(table.to_batches()), iter(found.to_batches()), params=cut_templates.Params()))
