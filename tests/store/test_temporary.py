"""A process's temporary folder is removed by itself, or by the next owner once it is dead, and by nobody else."""

import fcntl
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store import temporary

OWNER = """
import sys, tempfile
from pipeline_tasks.store import temporary
temporary.new_folder().enter()
open(tempfile.mkstemp(dir=tempfile.gettempdir())[1], "w").write("a shard")
print(tempfile.gettempdir(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(temporary, "RAY_FOLDER", 500)  # nothing in /tmp
    return tmp_path


def owner(place: Path) -> tuple["subprocess.Popen[str]", Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=-1,
        stdout=-1,
        text=True,
        env={**temporary.os.environ, "TMPDIR": str(place)},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_folder_of_a_dead_owner_is_removed_and_that_of_a_living_one_stays(place: Path) -> None:
    living, alive = owner(place)
    dead, abandoned = owner(place)
    dead.kill()
    dead.communicate()
    assert len(list(abandoned.iterdir())) == 2
    mine = temporary.new_folder()
    assert not abandoned.exists()
    assert len(list(alive.iterdir())) == 2
    living.communicate()
    assert [path.parent for path in (*mine.paths, alive, abandoned)] == [temporary.user_folder()] * 3
    mine.remove()
    assert not mine.paths[0].exists()


def test_a_folder_whose_owner_died_before_it_had_its_lock_is_removed(place: Path) -> None:
    half = temporary.user_folder() / "run-0123abcd"
    half.mkdir()
    temporary.new_folder()
    assert not half.exists()


def test_folders_are_created_and_removed_by_one_process_at_a_time(place: Path) -> None:
    """A folder is without its lock for a moment; who looks for abandoned ones then would remove it."""
    parent = temporary.user_folder()
    with ThreadPoolExecutor(1) as other, (parent / "runs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        created = other.submit(temporary.new_folder)
        assert not wait([created], 0.1).done
        assert list(parent.glob("run-*")) == []
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert created.result(timeout=30).paths[0].is_dir()


def test_the_users_folder_is_the_same_from_inside(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = temporary.user_folder()
    monkeypatch.setenv("TMPDIR", "")
    monkeypatch.setenv("RAY_TMPDIR", "")
    assert not temporary.is_inside()
    temporary.new_folder().enter()
    assert temporary.is_inside()
    assert temporary.user_folder() == outside


@pytest.mark.parametrize("name", ["run-0123abcd", "refinery-{user}/other", "run-0123abcd/refinery-{user}"])
def test_a_folder_of_such_a_name_elsewhere_is_no_owners(
    place: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place / name.format(user=temporary.os.getuid())
    folder.mkdir(parents=True, mode=0o700)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert not temporary.is_inside()
    assert temporary.user_folder().parent == folder


def test_sockets_of_ray_have_a_short_folder_where_tmpdir_is_long(
    place: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = tmp_path_factory.mktemp("s")
    monkeypatch.setattr(temporary, "RAY_FOLDER", 0)
    monkeypatch.setattr(temporary, "SHORT", short)
    folder = temporary.new_folder()
    assert [path.parent.parent for path in folder.paths] == [place, short]
    assert folder.paths[0].name == folder.paths[1].name


@pytest.mark.parametrize(("room", "folders"), [(0, 1), (1, 2)])
def test_a_tmpdir_that_just_fits_is_rays_too(
    place: Path,
    room: int,
    folders: int,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = temporary.new_folder()
    monkeypatch.setattr(temporary, "RAY_FOLDER", len(str(own.paths[0])) - room)
    monkeypatch.setattr(temporary, "SHORT", tmp_path_factory.mktemp("s"))
    assert len(temporary.new_folder().paths) == folders


@pytest.mark.parametrize("kind", ["link", "open", "file"])
def test_a_folder_that_others_may_enter_is_refused(place: Path, kind: str) -> None:
    folder = place / f"refinery-{temporary.os.getuid()}"
    if kind == "link":
        (place / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(place / "elsewhere")
    elif kind == "open":
        folder.mkdir()
        folder.chmod(0o755)
    else:
        folder.touch()
    with pytest.raises(RecipeError, match=rf"{re.escape(str(folder))}\b.*TMPDIR"):
        temporary.new_folder()


@pytest.mark.parametrize("kind", ["nowhere", "file"])
def test_a_tmpdir_that_is_not_there_is_named(place: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python took `/tmp` in its place, and filled that."""
    (place / "file").touch()
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(place / kind))
    with pytest.raises(RecipeError, match=re.escape(f"TMPDIR={place}/{kind}: ")):
        temporary.new_folder()


OWNED = """
import sys, tempfile
from pathlib import Path
from pipeline_tasks.store.temporary import owned
with owned():
    outer = tempfile.gettempdir()
    with owned():
        print(outer, tempfile.gettempdir(), flush=True)
    assert Path(outer).is_dir(), "who is below an owner leaves the owner's folder"
    sys.stdin.read()
"""


@pytest.mark.parametrize("end", ["itself", "SIGTERM"])
def test_the_folder_of_a_process_ends_with_it(place: Path, end: str) -> None:
    environment = {**temporary.os.environ, "TMPDIR": str(place)}
    with subprocess.Popen([sys.executable, "-c", OWNED], stdin=-1, stdout=-1, text=True, env=environment) as process:
        assert process.stdout is not None
        outer, inner = process.stdout.readline().split()
        assert outer == inner
        assert Path(outer).parent == temporary.user_folder()
        if end == "SIGTERM":
            process.terminate()
        process.communicate()
    assert process.returncode == (128 + 15 if end == "SIGTERM" else 0)
    assert not Path(outer).exists()


def test_sockets_are_in_a_short_folder_where_their_names_would_be_too_long(
    place: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporary, "SHORT", tmp_path_factory.mktemp("s"))
    usual = temporary.user_folder()
    room = temporary.SOCKET_PATH - len(f"{usual}/")
    assert temporary.socket_folder(room) == usual
    assert temporary.socket_folder(room + 1).parent == temporary.SHORT


def test_a_place_where_no_folder_can_be_made_is_named(place: Path) -> None:
    folder = temporary.user_folder()
    (folder / "runs.lock").mkdir()
    with pytest.raises(RecipeError, match=rf"{re.escape(str(folder))}: .*TMPDIR"):
        temporary.new_folder()
    with pytest.raises(RecipeError, match=rf"{re.escape(str(place / 'none'))}/.*TMPDIR"):
        temporary.user_folder(place / "none")
