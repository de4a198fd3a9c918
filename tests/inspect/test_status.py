"""`refinery status` shows one recipe of a root, and names the others."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_tasks import api
from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import GateRefused

LINE = "The boats came back to the harbor before the rain, and the men of the village went home with what they had."


def test_recipes_beside_the_one_that_is_shown_are_named_also_those_that_published_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    landing, root = tmp_path / "2026-11-19.parquet", str(tmp_path / "root")
    pq.write_table(pa.table({"text": [LINE]}), landing)
    for name in ("first", "second"):
        api.refine(str(landing), root, api.recipe(["ingest", "extract"], name=name))
    with pytest.raises(GateRefused):
        api.refine(str(landing), root, api.recipe(["ingest", ("extract", {"min_chars": 9000})], name="third"))
    capsys.readouterr()
    assert main(["status", root, "--recipe", "first"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "other recipes: second, third; `--recipe NAME` shows one"
    assert main(["status", root, "--recipe", "first", "--snapshot", "2026-11-19.parquet"]) == 0
    assert "other recipes" not in capsys.readouterr().out
