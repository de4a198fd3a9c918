"""The trend of retention counts records that could be a new page: what an earlier snapshot has is no loss."""

from dataclasses import replace

import pytest

from pipeline_tasks.inspect.versions.overview import overview_of
from tests.small_root import DAYS, RECIPE, SmallRoot


@pytest.mark.usefixtures("airflow_here")
def test_pages_that_an_earlier_snapshot_has_are_no_loss(small_root: SmallRoot) -> None:
    from refinery_airflow.pages.overview import retention

    [state] = [state for state in overview_of(small_root.root, RECIPE).published if state.snapshot == DAYS[1]]
    assert state.version
    assert state.summary
    first, *others = state.summary.stages
    assert retention(state) == state.version.documents / (first.rows_in - first.no_page)
    more = replace(first, rows_in=first.rows_in + 40, no_page=first.no_page + 40)
    assert retention(replace(state, summary=replace(state.summary, stages=(more, *others)))) == retention(state)
