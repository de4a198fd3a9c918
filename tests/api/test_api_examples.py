"""The examples of the Python API run as they are written: those of its pages, and the notebook with what it prints."""

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_tasks import api
from tests import small_build
from tests.small_root import SmallRoot

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reference" / "python.md"
GUIDE = DOCS / "how-to/start/use-it-as-a-library.md"
NOTEBOOK = DOCS / "how-to/start/use-it-as-a-library.ipynb"


def examples_of(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def test_the_examples_run_in_order(small_root: SmallRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = small_build.copied(small_root, tmp_path)
    small_build.build(small)
    dataset = next(name for name in api.recipes(small.root) if name != "small")
    names: dict[str, Any] = {}
    for example in examples_of(PAGE):
        here = example.replace("/data/refined/corpus@1", f"{small.root}/{dataset}@1").replace(
            "/data/refined", small.root
        )
        here = here.replace("recipes(root)[0]", '"small"')
        exec(compile(here, "python.md", "exec"), names)
    assert names["frame"]["n"].sum() == names["table"]["n"].to_numpy().sum() > 0
    assert names["manifest"].rows == names["version"].documents
    assert names["batch"]["input_ids"].shape[0] > 0
    assert "extract:too_short" in capsys.readouterr().out


def test_the_page_names_everything_that_is_supported() -> None:
    page = PAGE.read_text()
    assert [name for name in api.__all__ if not hasattr(api, name)] == []
    assert [name for name in api.__all__ if name not in page] == []


def test_the_examples_of_the_guide_run_in_order(tmp_path: Path) -> None:
    day = tmp_path / "landing" / "2026-11-19"
    day.mkdir(parents=True)
    text = "In the harbor of {} the boats lie still, and nobody knows when the wind will come back to the village."
    pages = pa.table({"text": [text.format(f"{name} {number}") for name in ("Ayr", "Brest") for number in range(20)]})
    pq.write_table(pages, day / "pages.parquet")
    names: dict[str, Any] = {}
    for example in examples_of(GUIDE):
        exec(compile(example.replace('"/data/', f'"{tmp_path}/'), "guide.md", "exec"), names)
    assert names["kept"].num_rows == 3
    assert names["good"].num_rows + names["bad"].num_rows == names["tagged"].num_rows > 0
    assert names["version"].documents > 0
    assert names["batch"]["input_ids"].shape[0] == 1


def test_the_notebook_prints_what_it_shows() -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    printed = []
    for cell in cells:
        with contextlib.redirect_stdout(said := io.StringIO()):
            exec(compile("".join(cell["source"]), NOTEBOOK.name, "exec"), names)
        printed.append(said.getvalue())
    shown = ["".join(line for output in cell["outputs"] for line in output["text"]) for cell in cells]
    assert printed == shown
    assert any(shown)
