"""What every stage promises, over all stages of the package: each over what the one before it had."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from pipeline_tasks.stages import NAMES
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.testing.refining import rows
from pipeline_tasks.testing.stages import check_stage
from tests.every_stage import chain, land, params

TEXTS = [
    "The garden has good soil, and the judge of the court reads in it.",
    "The garden has good soil, and the judge of the court reads in it.",
    "The engine needs fuel. Write to ada@example.org for more of it.",
    "short",
    "slurword " * 30,
    "which of the two millers of the upper lake counted his eels twice before the thaw came",
    "Ein Garten hat gute Erde, und der Richter liest darin an jedem Tag.",
]


class Given(NamedTuple):
    """The rows that each stage gets, and its params."""

    rows: Mapping[str, pa.Table]
    params: Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    folder = tmp_path_factory.mktemp("every")
    named, landing = params(folder), str(folder / "landing")
    parent = land(folder / "root", Path(landing), TEXTS)
    tables = {}
    for step in chain(folder / "root", parent, landing, named):
        if step.stage != NAMES[0]:  # it reads landed files, and no rows
            manifest = read_manifest(str(folder / "root"), step.request.parent)
            tables[step.stage] = rows(folder / "root", manifest, landing=landing)
    return Given(tables, named)


@pytest.mark.parametrize("stage", NAMES[1:])
def test_it_keeps_what_every_stage_promises(stage: str, given: Given) -> None:
    assert len(given.rows[stage]) > 1
    check_stage(stage, given.rows[stage], given.params.get(stage))
