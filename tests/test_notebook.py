"""The examples of the Python API run as they are written, over a root of refined days with a dataset."""

import re
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks import notebook
from tests import small_build
from tests.small_root import SmallRoot

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "python.md"


def test_the_examples_run_in_order(small_root: SmallRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = small_build.copied(small_root, tmp_path)
    small_build.build(small)
    dataset = next(name for name in notebook.recipes(small.root) if name != "small")
    names: dict[str, Any] = {}
    examples = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    for example in examples:
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
    assert [name for name in notebook.__all__ if not hasattr(notebook, name)] == []
    assert [name for name in notebook.__all__ if name not in page] == []
