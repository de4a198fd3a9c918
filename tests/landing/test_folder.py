"""Every entry of an input folder is read, or skipped with a reason, or refused with a name; none of them hangs."""

import os
import re
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_tasks.errors import NothingLanded, RecipeError, SnapshotIncomplete
from pipeline_tasks.landing.arrival import MISSING, arrival_of
from pipeline_tasks.landing.folder import refuse_overlap
from pipeline_tasks.landing.listing import BESIDE_ARCHIVES, land, list_snapshot
from pipeline_tasks.store import storage


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    folder = tmp_path / "crawl"
    folder.mkdir()
    (folder / "a.warc.gz").write_bytes(b"x")
    return folder


def skipped(folder: Path) -> dict[str, str]:
    """What is skipped beside `a.warc.gz`, which is read."""
    listing = list_snapshot(str(folder))
    assert [name for name, _, _ in listing.files] == ["a.warc.gz"]
    return dict(listing.skipped)


HIDDEN = "hidden: its name begins with . or _"

# --- names and kinds ------------------------------------------------------------------------------------------


def test_names_that_no_manifest_can_carry_are_skipped(crawl: Path) -> None:
    for raw in (b"caf\xe9.warc.gz", b"new\nline.warc.gz", b"\x1b[31mred.warc.gz", b"\xff\xfe/b.warc.gz"):
        path = crawl / os.fsdecode(raw)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    control, encoding = "its name has control characters", "its name is not UTF-8"
    assert skipped(crawl) == {
        "caf\\udce9.warc.gz": encoding,
        "new\\nline.warc.gz": control,
        "\\x1b[31mred.warc.gz": control,
        "\\udcff\\udcfe/b.warc.gz": encoding,
    }
    land(str(crawl.parent / "root"), str(crawl))


def test_hidden_files_and_folders_are_named(crawl: Path) -> None:
    for name in ("_temporary/0/b.warc.gz", ".git/c.warc.gz", ".git/d", "part/_SUCCESS", ".x.warc.gz"):
        (crawl / name).parent.mkdir(parents=True, exist_ok=True)
        (crawl / name).write_bytes(b"x")
    assert skipped(crawl) == dict.fromkeys(["_temporary/", ".git/", "part/_SUCCESS", ".x.warc.gz"], HIDDEN)


@pytest.fixture
def listening(crawl: Path) -> Iterator[None]:
    """A socket in the folder, bound by its relative name: absolute ones may be too long."""
    before = Path.cwd()
    os.chdir(crawl)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s.warc")
        os.chdir(before)
        yield


def test_what_is_no_file_is_skipped(crawl: Path, listening: None) -> None:
    os.mkfifo(crawl / "b.warc.gz")
    (crawl / "null.warc.gz").symlink_to("/dev/null")
    assert skipped(crawl) == {
        "b.warc.gz": "a FIFO",
        "s.warc": "a socket",
        "null.warc.gz": "a symlink that leaves the folder; copy the file, or land the folder where it is",
    }
    land(str(crawl.parent / "root"), str(crawl))


def test_symlinks_are_followed_only_to_files_that_are_not_read_anyway(crawl: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.warc").write_bytes(b"secret")
    (tmp_path / "crawling").mkdir()
    (crawl / ".store").mkdir()
    (crawl / ".store/b").write_bytes(b"yy")
    links = {
        "b.warc.gz": ".store/b",
        "again.warc.gz": "a.warc.gz",
        "gone.warc.gz": "nothing",
        "loop.warc.gz": "loop.warc.gz",
        "out.warc": "../secret.warc",
        "sibling": "../crawling",
        "up": ".",
    }
    for name, target in links.items():
        (crawl / name).symlink_to(target)
    listing = list_snapshot(str(crawl))
    leaves, nowhere = "a symlink that leaves the folder", "a symlink that leads nowhere"
    assert listing.files == (("a.warc.gz", 1, ""), ("b.warc.gz", 2, ""))
    assert {name: reason.partition(";")[0] for name, reason in listing.skipped} == {
        ".store/": HIDDEN.partition(";")[0],
        "again.warc.gz": "a symlink to a file that is read itself",
        "gone.warc.gz": nowhere,
        "loop.warc.gz": nowhere,
        "out.warc": leaves,
        "sibling": leaves,
        "up": "a symlink to a folder",
    }


def test_a_folder_of_nothing_but_skipped_entries_says_why(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.warc.gz")
    with pytest.raises(NothingLanded, match=rf"{re.escape(str(tmp_path))} .* a\.warc\.gz .*FIFO"):
        list_snapshot(str(tmp_path))
    assert arrival_of(str(tmp_path)).state == MISSING


def test_a_promised_file_that_is_skipped_says_why(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.warc.gz")
    (tmp_path / "warc.paths").write_text("crawl-data/a.warc.gz\n")
    with pytest.raises(SnapshotIncomplete, match=rf"{re.escape(str(tmp_path))}: .* a\.warc\.gz .*FIFO"):
        list_snapshot(str(tmp_path))


def test_a_folder_that_may_not_be_entered_is_named() -> None:
    with tempfile.TemporaryDirectory() as place:
        closed = Path(place) / "day" / "closed"
        closed.mkdir(parents=True)
        Path(place).chmod(0o755)
        closed.chmod(0)
        user = os.geteuid()
        if not user:
            os.seteuid(65534)  # nobody: the superuser may enter any folder
        try:
            with pytest.raises(RecipeError, match=re.escape(f"{closed}: ")):
                list_snapshot(str(closed.parent))
        finally:
            os.seteuid(user)
            closed.chmod(0o700)


def test_a_file_that_vanishes_while_it_is_listed_is_not_listed(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "d").symlink_to("nothing")
    entries = storage.connect(str(tmp_path)).list("")
    assert next(entries).path == "a"
    (tmp_path / "b").unlink()
    assert [entry.path for entry in entries] == ["c"]


# --- tables ---------------------------------------------------------------------------------------------------

TABLES = {
    "a Delta table": "_delta_log/00000000000000000000.json",
    "an Iceberg table": "metadata/v3.metadata.json",
    "a Hudi table": ".hoodie/hoodie.properties",
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("above", ["", "db/table/"])
def test_the_folder_of_a_table_with_a_log_is_refused(tmp_path: Path, kind: str, above: str) -> None:
    for name in (TABLES[kind], "part-0.parquet"):
        (tmp_path / (above + name)).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / (above + name)).write_bytes(b"PAR1")
    named = f"{re.escape(str(tmp_path))} .*{kind} .*{re.escape(above)}"
    with pytest.raises(RecipeError, match=named):
        list_snapshot(str(tmp_path))
    with pytest.raises(RecipeError, match=named):  # waiting does not help: the sensor must not wait
        arrival_of(str(tmp_path))
    (tmp_path / "warc.paths").write_text(f"{above}part-0.parquet")
    assert len(list_snapshot(str(tmp_path)).files) == 1


def test_files_that_are_called_like_a_part_of_a_table_are_no_table(crawl: Path) -> None:
    for name in ("x.metadata.json", ".metadata.json", "metadata/notes.json", "my_delta_log/x"):
        (crawl / name).parent.mkdir(exist_ok=True)
        (crawl / name).write_bytes(b"{}")
    beside = dict.fromkeys(("metadata/notes.json", "x.metadata.json"), BESIDE_ARCHIVES)
    assert skipped(crawl) == {".metadata.json": HIDDEN, **beside}


# --- input and output -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "uri", "relation"),
    [
        ("/x/a", "/x/a", "is"),
        ("/x/a/", "/x/b/../a", "is"),
        ("/x/a/out", "/x/a", "contains"),
        ("/x/a", "/x/a/in", "lies in"),
        ("/x/a", "file:///x/a/in", "lies in"),
        ("file:///x/a/out", "/x//a/", "contains"),
        ("/x/a", "/", "contains"),
        ("/x/a", "/x/ab", None),
        ("/x/ab", "/x/a", None),
        ("/x/a/out", "/x/a/in.warc.gz", None),
        ("s3://b/a", "s3://b/a/", "is"),
        ("s3://b/a/out", "s3://b", "contains"),
        ("s3://b", "s3://b/in/2026", "lies in"),
        ("s3://b/a", "s3://b/ab", None),
        ("s3://b/a", "s3://c/a", None),
        ("s3://b/a", "/b/a", None),
    ],
)
def test_input_and_output_are_kept_apart(root: str, uri: str, relation: str | None) -> None:
    if relation is None:
        refuse_overlap(root, uri)
        return
    with pytest.raises(RecipeError, match=f" {re.escape(uri)} {relation} .* {re.escape(root)};"):
        refuse_overlap(root, uri)


def test_a_symlink_hides_no_overlap(crawl: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(crawl)
    with pytest.raises(RecipeError, match=re.escape(f"{crawl} contains ")):
        land(str(tmp_path / "link/out"), str(crawl))
    with pytest.raises(RecipeError, match=re.escape(f"{tmp_path}/link is ")):
        land(str(crawl), str(tmp_path / "link"))
