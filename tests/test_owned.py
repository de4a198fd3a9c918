"""Files that run as code are not read where another user could have written them."""

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.owned import require_own
from tests.embedded import PROJECT

OTHER = 12345

LOOP = """
import numpy
from pipeline_tasks.text.base.compiled import compiled

@compiled
def doubled(values):
    return values * 2

print(doubled(numpy.array([21]))[0])
"""


class Planted:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.path}",)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of compiled loops as numba leaves it: a folder for each room, with a file in it."""
    (tmp_path / "cache" / "stamp" / "room").mkdir(parents=True)
    (tmp_path / "cache" / "stamp" / "room" / "loop.nbi").touch()
    for path in (tmp_path / "cache").rglob("*"):
        path.chmod(0o755)
    return tmp_path / "cache" / "stamp"


@pytest.fixture
def give_away(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Make a file another user's; who is not root is another user from then on."""

    def give(path: Path) -> None:
        if os.geteuid():
            monkeypatch.setattr(os, "geteuid", lambda: OTHER)
        else:
            os.chown(path, OTHER, -1, follow_symlinks=False)

    return give


def refused_path(folder: Path) -> str:
    """Return the path that a refusal begins with, "" if there is none."""
    require_own.cache_clear()
    try:
        require_own(str(folder))
    except RecipeError as refusal:
        return str(refusal).partition(" ")[0]
    return ""


def test_a_folder_of_this_user_is_taken_and_one_that_is_not_there_is_made(folder: Path) -> None:
    assert refused_path(folder) == ""
    assert refused_path(folder.parent / "new" / "stamp") == ""
    assert (folder.parent / "new" / "stamp").is_dir()


@pytest.mark.parametrize("part", ["", "room", "room/loop.nbi"])
@pytest.mark.parametrize("bit", [0o020, 0o002])
def test_what_another_user_can_write_is_refused_by_name(folder: Path, part: str, bit: int) -> None:
    path = folder / part
    path.chmod(path.stat().st_mode | bit)
    assert refused_path(folder) == str(path)


@pytest.mark.parametrize("part", ["", "room", "room/loop.nbi"])
def test_what_another_user_has_written_is_refused_by_name(
    folder: Path, part: str, give_away: Callable[[Path], None]
) -> None:
    folder.chmod(0o700)
    give_away(folder / part)
    assert refused_path(folder).startswith(str(folder.parent))
    if not os.geteuid():
        assert refused_path(folder) == str(folder / part)


def test_a_link_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    shutil.move(folder / "room", tmp_path / "elsewhere")
    (folder / "room").symlink_to(tmp_path / "elsewhere")
    assert refused_path(folder) == str(folder / "room")
    (folder.parent / "other").symlink_to(tmp_path / "nowhere")
    assert refused_path(folder.parent / "other") == str(folder.parent / "other")


def test_a_folder_that_others_cannot_enter_may_have_files_that_they_could_write(folder: Path) -> None:
    """A umask of 002, which many systems give to users with groups of their own, makes such files."""
    (folder / "room" / "loop.nbi").chmod(0o664)
    folder.chmod(0o700)
    assert refused_path(folder) == ""


def test_a_parent_of_another_user_is_refused_by_name(folder: Path, give_away: Callable[[Path], None]) -> None:
    give_away(folder.parent)
    assert refused_path(folder) == str(folder.parent)


def test_a_parent_is_refused_where_others_could_put_another_folder_in_its_place(folder: Path) -> None:
    folder.parent.chmod(0o777)
    assert refused_path(folder) == str(folder.parent)
    folder.parent.chmod(0o1777)  # as /tmp is
    assert refused_path(folder) == ""


def test_with_an_open_umask_the_folder_that_is_made_is_closed(tmp_path: Path) -> None:
    script = "import os, sys; os.umask(0o002); from pipeline_tasks.owned import require_own; require_own(sys.argv[1])"
    subprocess.run([sys.executable, "-c", script, tmp_path / "a" / "b"], cwd=PROJECT, check=True)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "a", tmp_path / "a" / "b")] == [0o700, 0o700]


def compiled(cache: Path, script: Path) -> "subprocess.CompletedProcess[str]":
    """Call a loop in a process of its own, which keeps its machine code in a folder, or takes it from there."""
    env = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(PROJECT)}
    return subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, check=False)


def test_a_planted_index_of_compiled_loops_does_not_run(tmp_path: Path) -> None:
    """numba's index is a pickle: one that this user has written runs, and one that another could have written does not."""
    cache, planted, script = tmp_path / "cache", tmp_path / "made", tmp_path / "loop.py"
    script.write_text(LOOP)
    assert compiled(cache, script).stdout == "42\n"
    [index] = cache.rglob("loop.doubled-*.nbi")
    index.write_bytes(pickle.dumps(Planted(planted)))
    compiled(cache, script)
    assert planted.exists(), "numba reads it otherwise: this test shows nothing"
    planted.unlink()
    index.write_bytes(pickle.dumps(Planted(planted)))
    index.chmod(0o666)
    refused = compiled(cache, script)
    assert not planted.exists()
    assert refused.returncode
    assert f"RecipeError: {index} " in refused.stderr


def test_a_command_names_the_folder_in_one_line(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    env = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "pipeline_tasks.cli", "setup", "compile"]
    done = subprocess.run(command, env=env, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == RecipeError.exit_code
    assert done.stderr.startswith(f"refinery: {cache} ")
    assert "NUMBA_CACHE_DIR" in done.stderr
    assert len(done.stderr.splitlines()) == 1
