"""A loaded file is shared until the file changes."""

from pathlib import Path

from pipeline_tasks.text.base.cached import cached


def test_a_file_is_loaded_once_per_content_and_arguments(tmp_path: Path) -> None:
    path, calls = tmp_path / "list.txt", []

    def load(path: str, suffix: str) -> str:
        calls.append(suffix)
        return Path(path).read_text() + suffix

    path.write_text("one")
    assert [cached(load, str(path), "!"), cached(load, str(path), "!")] == ["one!", "one!"]
    assert cached(load, str(path), "?") == "one?"
    path.write_text("another")
    assert cached(load, str(path), "!") == "another!"
    assert calls == ["!", "?", "!"]
