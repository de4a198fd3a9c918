"""Commands that show texts log their looks at a shared root; `access` lists them, and `verify` checks them."""

import io
import json
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.ask.known import questions
from pipeline_tasks.errors import ContractError, LookRefused
from pipeline_tasks.inspect.command import whoami
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.access_log import Look, looks, record
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.upkeep.vacuum import find_orphans
from tests.commands import Refinery
from tests.small_root import SmallRoot

DAY = ("--recipe", "small", "--snapshot", "2026-11-19")


@pytest.fixture
def root(small_root: SmallRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of the small root whose looks are logged."""
    monkeypatch.setenv("REFINERY_ACCESS_LOG", "on")
    return str(shutil.copytree(small_root.root, tmp_path / "root"))


def rows(root: str) -> list[dict[str, Any]]:
    version = version_log.current(root, "small", "2026-11-19")
    return [
        row for batch in read_shards(root, read_manifest(root, version.refined).shards) for row in batch.to_pylist()
    ]


def commands(root: str, to: Path) -> dict[str, tuple[object, ...]]:
    """A use of each command that shows texts of documents, on a root without columns, vectors, tokens and redactions."""
    row = rows(root)[0]
    return {
        "document": (row["id"], root, *DAY),
        "why": (row["id"], root),
        "search": (" ".join(row["text"].split()[:2]), root, *DAY),
        "look find": (root, "--text", " ".join(row["text"].split()[:2])),
        "look duplicates": (row["id"], root, "--recipe", "small"),
        "look breakdown": (root, *DAY, "--by", "site"),
        "rejects": (root, *DAY, "--stage", "dedup_exact", "--to", to),
        "annotations": (root, *DAY, "--to", to.with_name("annotations")),
        "sql": (root, "SELECT * FROM kept", "--recipe", "small"),
        "read": (root, *DAY, "--kept", 2, "--rejected", 1),
    }


ELSEWHERE = {
    "export",
    "look cut",
    *(f"look {name}" for name in ("contamination", "intruder", "map", "redactions", "similar", "trace")),
}
"""They need files that were cut, columns, evaluation sets, vectors, redactions, tokens or a training dataset: what they share with the others is `looked`."""


def test_each_command_that_shows_texts_logs_its_look(
    root: str, refinery: Refinery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    texts = [word for row in rows(root) for word in (row["text"][:40], row["url"])]
    used = commands(root, tmp_path / "out")
    assert used.keys() | ELSEWHERE == {name for name, entry in questions().items() if entry.shows}
    for name, arguments in used.items():
        before = len(list(looks(root)))
        done = refinery(*name.split(), *arguments, "--purpose", f"test of {name}")
        assert (name, done.returncode) == (name, 0), done.stderr
        *_, last = looks(root)
        assert len(list(looks(root))) == before + 1, name
        assert (last.by, last.through, last.purpose) == (whoami(), "command", f"test of {name}")
        assert last.what == name.rpartition(" ")[2]
        assert last.rows > 0, name
    stored = " ".join(path.read_text() for path in Path(root, "access").rglob("*.json"))
    assert [text for text in texts if text in stored] == []


def test_commands_that_show_texts_say_so_in_their_module() -> None:
    """A command that calls `looked` takes a purpose, and no other does; a question is logged by who asks it."""
    for name, entry in questions().items():
        if entry.is_question:
            continue
        path = Path(import_module(entry.module).__file__ or "")
        assert (name, "looked(" in path.read_text()) == (name, entry.shows)


def test_a_command_whose_look_cannot_be_logged_prints_nothing(root: str, refinery: Refinery, tmp_path: Path) -> None:
    Path(root, "access").write_text("a file where the folder has to be")
    for name, arguments in commands(root, tmp_path / "out").items():
        done = refinery(*name.split(), *arguments)
        assert (name, done.returncode, done.stdout) == (name, LookRefused.exit_code, "")
        assert "example.org" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_root_of_this_machine_logs_nothing_unless_it_is_asked_to(
    root: str, refinery: Refinery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REFINERY_ACCESS_LOG")
    assert refinery("document", rows(root)[0]["id"], root, *DAY).returncode == 0
    assert not Path(root, "access").exists()


def test_the_purpose_may_come_from_the_environment(
    root: str, refinery: Refinery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFINERY_ACCESS_LOG", "purposes")
    refused = refinery("document", rows(root)[0]["id"], root, *DAY)
    assert (refused.returncode, refused.stdout) == (LookRefused.exit_code, "")
    monkeypatch.setenv("REFINERY_PURPOSE", "claim 7")
    assert refinery("document", rows(root)[0]["id"], root, *DAY).returncode == 0
    assert [look.purpose for look in looks(root)] == ["claim 7"]


def test_looks_are_listed_by_day_user_and_document(root: str, refinery: Refinery) -> None:
    for by, document in (("ada", "a" * 32), ("bob", "b" * 32), ("bob@desk", "a" * 32)):
        record(root, Look(by=by, through="page", what="document", documents=(document,), rows=1, purpose="claim 7"))

    def listed(*options: object) -> list[str]:
        done = refinery("keep", "access", root, "--json", *options)
        assert done.returncode == 0, done.stderr
        return [look["by"] for look in json.loads(done.stdout)]

    assert listed() == ["ada", "bob", "bob@desk"]
    assert listed("--by", "bob") == ["bob", "bob@desk"]
    assert listed("--document", "a" * 32) == ["ada", "bob@desk"]
    assert listed("--since", "9999-12-31") == []
    shown = refinery("keep", "access", root).stdout
    assert shown.count("claim 7") == 3
    assert shown.endswith("3 looks\n")
    assert refinery("keep", "access", root, "--since", "yesterday").returncode == 2


def test_verify_checks_looks_and_vacuum_keeps_them(root: str, refinery: Refinery) -> None:
    paths = [record(root, Look(by="ada", through="page", what="search")) for _ in range(3)]
    assert not [entry for entry, _ in find_orphans(root, grace=0, expire=1e-9).files if entry.path in paths]
    checked = refinery("verify", root, "--json", "--fast")
    assert (checked.returncode, json.loads(checked.stdout)["checked"]["looks"]) == (0, 3)
    path = Path(root, paths[1])
    path.write_bytes(path.read_bytes().replace(b"ada", b"eve"))
    found = refinery("verify", root, "--json", "--fast")
    assert found.returncode == ContractError.exit_code
    assert [problem["object"] for problem in json.loads(found.stdout)["problems"]] == [f"{root}/{paths[1]}"]
