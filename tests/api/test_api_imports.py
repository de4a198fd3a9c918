"""The library loads no scheduler, cluster engine, judge, framework of models or database before it needs one."""

import subprocess
import sys

import pytest

from tests.chain import PROJECT

HEAVY = ("airflow", "pyspark", "ray", "great_expectations", "torch", "duckdb")

LOADED = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"

ROWS = "pa.table({'text': ['a text of a page, and another one', None]})"


@pytest.mark.parametrize(
    "code",
    [
        "from pipeline_tasks import api",
        f"import pyarrow as pa; from pipeline_tasks import api; api.apply('dedup_minhash', {ROWS})",
        f"import pyarrow as pa; from pipeline_tasks import api; api.filter('c4', {ROWS}, edit=True)",
        "from pipeline_tasks import api; api.recipe(['ingest', 'extract'])",
    ],
    ids=["import", "apply", "filter", "recipe"],
)
def test_it_loads_what_it_needs(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{LOADED}"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
