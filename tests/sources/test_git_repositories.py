"""The files of a commit land as documents, with the license beside them, by Git's own program and without a checkout."""

import json
import os
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from refinery_sources.testing import check_source

from pipeline_tasks.errors import RecipeError
from tests.sources.pulling import NOW, Killed, digests_of, killed_after, promise_of, pull_source, query_of, records_of

PROSE = "The ferry leaves the harbor every morning before the fog has lifted from the water."


def git(folder: Path, *words: str) -> str:
    name = {
        "GIT_AUTHOR_NAME": "Ann",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "Ann",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    dates = {"GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}
    environment = {**os.environ, **name, **dates, "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, env=environment)
    return done.stdout.decode().strip()


def commit(folder: Path, **files: bytes) -> str:
    for name, body in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "more")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # what is fetched is kept there
    folder = tmp_path / "ferries"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "link").symlink_to("a.md")
    commit(
        folder,
        a_md=f"# Ferry\n\n{PROSE}\n".encode(),
        src__b_py=b"print('kelp')\n",
        src__old_txt="Über".encode("latin-1"),
        image_png=b"\x89PNG\0\0",
        large_bin=b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
        LICENSE=b"Do what you want.\n",
        LICENSES__MIT_txt=b"MIT\n",
    )
    return folder


def source(place: Path | str, **more: Any) -> dict[str, Any]:
    return {"git": {"repository": str(place), **more}}


def paths_of(place: Path) -> list[str]:
    return [json.loads(record["metadata"])["path"] for record in records_of(place)]


def test_a_file_of_a_commit_is_a_document_and_the_license_is_beside_it(repository: Path, tmp_path: Path) -> None:
    landed, _ = pull_source(source(repository), tmp_path / "landings")
    head = git(repository, "rev-parse", "HEAD")
    assert landed.name == f"news-20260102T030405Z-{head[:12]}"
    assert paths_of(landed) == ["LICENSE", "LICENSES/MIT.txt", "a.md", "src/b.py", "src/old.txt"]
    read = records_of(landed)
    assert (read[2]["text"], read[4]["text"]) == (f"# Ferry\n\n{PROSE}\n", "Über")
    assert read[3]["url"] == f"{repository.as_uri()}/src/b.py"
    assert (landed / "_terms-LICENSE").read_bytes() == b"Do what you want.\n"
    assert (landed / "_terms-LICENSES-MIT.txt").read_bytes() == b"MIT\n"
    about = promise_of(landed)["source"]
    assert about["cursor"] == head
    assert "LICENSE, LICENSES/MIT.txt" in about["terms"]["text"]
    assert about["facts"] == {"part-00000.parquet": {"left_out": {"binary": 1, "lfs": 1, "symlink": 1}}}


def test_it_keeps_what_every_source_promises(repository: Path, tmp_path: Path) -> None:
    cut = shutil.copytree(repository, tmp_path / "cut", symlinks=True)
    blob = git(cut, "rev-parse", "HEAD:a.md")
    (cut / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    check_source(query_of(source(repository)), cut=query_of(source(cut)))


def test_patterns_choose_paths_and_revisions_are_names_or_commits(repository: Path, tmp_path: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "tag", "-a", "v1", "-m", "one")
    commit(repository, c_md=b"later\n")
    chosen = {"include": ["*.md", "src/*"], "exclude": ["*.txt"]}
    landed, _ = pull_source(source(repository.as_uri(), **chosen), tmp_path / "landings")
    assert paths_of(landed) == ["a.md", "c.md", "src/b.py"]
    for revision in ("v1", first):
        old, _ = pull_source(source(repository, revision=revision, **chosen), tmp_path / revision)
        assert paths_of(old) == ["a.md", "src/b.py"]
        assert promise_of(old)["source"]["cursor"] == first


def test_an_unchanged_file_has_the_same_url_at_each_commit(repository: Path, tmp_path: Path) -> None:
    first, _ = pull_source(source(repository, include=["a.md"]), tmp_path / "landings")
    commit(repository, c_md=b"later\n")
    later, _ = pull_source(source(repository, include=["a.md"]), tmp_path / "landings")
    assert first != later
    keys = [(record["url"], record["payload_digest"]) for place in (first, later) for record in records_of(place)]
    assert keys[0] == keys[1]


def test_a_killed_pull_goes_on_with_its_commit(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        pull_source(source(repository), tmp_path / "landings", on_bytes=killed_after(1_000))
    first = git(repository, "rev-parse", "HEAD")
    commit(repository, c_md=b"later\n")
    landed, _ = pull_source(source(repository), tmp_path / "landings", moment=NOW + timedelta(days=1))
    assert promise_of(landed)["source"]["cursor"] == first
    whole, _ = pull_source(source(repository, revision=first), tmp_path / "whole")
    assert digests_of(landed) == digests_of(whole)


def test_no_program_of_a_repository_runs(repository: Path, tmp_path: Path) -> None:
    (repository / ".gitattributes").write_text("* filter=evil\n")
    git(repository, "config", "filter.evil.smudge", f"touch {tmp_path}/ran")
    git(repository, "config", "core.fsmonitor", f"touch {tmp_path}/ran")
    commit(repository, c_md=b"later\n")
    (tmp_path / "ran").unlink(missing_ok=True)
    pull_source(source(repository), tmp_path / "landings")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("place", "more", "named"),
    [
        ("", {"revision": "no-such"}, "no revision no-such"),
        ("", {"revision": "0" * 40}, "no revision 000"),
        ("", {"revision": "abc1234"}, "40 digits"),
        ("", {"revision": "--upload-pack=touch x"}, "revision"),
        ("", {"revision": "a..b"}, "revision"),
        ("", {"include": ["*.rs"]}, "no files"),
        ("/nowhere", {}, "nowhere"),
        ("ext::sh -c touch% /tmp/x", {}, "repository"),
        ("--upload-pack=x", {}, "repository"),
        ("https://ann:word@git.example/a", {}, "'git.example/a'"),
        ("ssh://git.example/a", {}, "repository"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(
    repository: Path, place: str, more: dict[str, Any], named: str, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match=named) as refused:
        pull_source(source(place or repository, **more), tmp_path / "landings")
    assert "word" not in str(refused.value)


def test_a_repository_may_be_named_from_the_folder_of_the_command(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository.parent)
    landed, _ = pull_source(source(Path(repository.name)), tmp_path / "landings")
    assert "a.md" in paths_of(landed)


def test_a_folder_that_is_no_repository_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "plain").mkdir()
    with pytest.raises(RecipeError, match="no repository"):
        pull_source(source(tmp_path / "plain"), tmp_path / "landings")
