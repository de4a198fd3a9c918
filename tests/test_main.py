"""The entry point of a cluster's job runs as a module and as a file, as spark-submit runs it."""

import json
from pathlib import Path

import pytest

from pipeline_tasks.errors import RecipeError
from tests.chain import PROJECT, command

FILE = str(PROJECT / "pipeline_tasks" / "__main__.py")


@pytest.mark.parametrize("entry", [("-m", "pipeline_tasks"), (FILE,)], ids=["module", "file"])
def test_a_request_is_handled_and_its_reply_is_printed(entry: tuple[str, ...], tmp_path: Path) -> None:
    """As a file, `pipeline_tasks/` itself is first on the path, where the room `inspect` shadows the standard module."""
    (tmp_path / "day").mkdir()
    (tmp_path / "day" / "a.jsonl").write_text('{"text": "hello"}\n')
    request = {"verb": "land", "root": str(tmp_path / "root"), "input": str(tmp_path / "day")}
    (tmp_path / "request.json").write_text(json.dumps(request))
    done = command(*entry, str(tmp_path / "request.json"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["snapshot"] == "day"


def test_a_request_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 200_000)
    for uri, complaint in ((tmp_path, "is a folder"), (tmp_path / "deep.json", "is not JSON")):
        done = command("-m", "pipeline_tasks", str(uri))
        assert done.returncode == RecipeError.exit_code
        assert complaint in done.stderr
        assert "Traceback" not in done.stderr
