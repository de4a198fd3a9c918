"""`refinery look versions` lists every version of every recipe, the newest last, with what has become of it."""

import json
import os
import shutil
from dataclasses import fields
from pathlib import Path

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.inspect.versions import list_versions
from pipeline_tasks.publish.logs import version_log
from tests.refining import resealed
from tests.small_root import DAYS, RECIPE, SmallRoot


@pytest.fixture
def root(small_root: SmallRoot, tmp_path: Path) -> str:
    """A copy of the small root in which the first day is published a second time, as another release would."""
    copy = tmp_path / "root"
    shutil.copytree(small_root.root, copy)
    version = version_log.versions(str(copy), RECIPE)[0]
    first = {field.name: getattr(version, field.name) for field in fields(version) if field.name != "number"}
    version_log.append(str(copy), first | {"documents": 9})
    build = {
        "recipe": "corpus",
        "snapshot": "build",
        "manifests": {"compose": "compose/0/manifest.json"},
        "verdicts": {},
    }
    version_log.append(str(copy), first | build)
    return str(copy)


def test_a_version_is_published_superseded_or_retracted(root: str) -> None:
    lines = list_versions(root, RECIPE)
    assert [(line.number, line.snapshot, line.state) for line in lines] == [
        (1, DAYS[0], "superseded"),
        (2, DAYS[1], "published"),
        (3, DAYS[2], "retracted"),
        (5, DAYS[0], "published"),
    ]
    assert [line.documents for line in lines][::3] == [10, 9]
    assert lines[0].note == "version 5 follows it"
    assert lines[2].note.endswith("a test")
    assert [(line.tokens, line.sequences, line.tokenizer) for line in lines] == [(0, 0, "")] * 4


def test_a_copy_of_a_root_has_the_times_at_which_versions_were_published(
    root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = str(shutil.copytree(root, tmp_path / "copy", copy_function=shutil.copyfile))
    for path in Path(copy).glob("datasets/*/*.json"):
        os.utime(path, (0, 0))
    assert list_versions(copy, RECIPE) == list_versions(root, RECIPE)
    assert list_versions(copy, RECIPE)[0].published_at[:19] == version_log.versions(root, RECIPE)[0].at[:19]
    assert not any(line.is_file_time for line in list_versions(copy, RECIPE))
    again = version_log.restore(copy, RECIPE, DAYS[2])
    assert again.at > version_log.versions(copy, RECIPE)[-2].at, "it is published now, and not when it first was"
    first = Path(copy, version_log.version_path("corpus", 1))
    resealed(first, at="")
    Path(copy, "datasets/corpus/heads", first.stem).unlink()
    os.utime(first, (0, 0))
    [line] = list_versions(copy, "corpus")
    assert (line.published_at, line.is_file_time) == ("1970-01-01T00:00:00+00:00", True)
    assert main(["look", "versions", "--recipe", "corpus", copy]) == 0
    assert capsys.readouterr().out.rstrip().endswith("1970-01-01 00:00  yes")


def test_every_recipe_is_listed_unless_one_is_named(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", "versions", root, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [(fact["recipe"], fact["number"]) for fact in facts] == [
        ("corpus", 1),
        *((RECIPE, at) for at in (1, 2, 3, 5)),
    ]
    assert facts[0]["snapshot"] == "build"
    assert facts[0]["published_at"].endswith("+00:00")
    assert main(["look", "versions", "--recipe", RECIPE, root]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["1", "2", "3", "5"]
    assert head.split()[:4] == ["recipe", "version", "snapshot", "state"]


def test_a_root_or_recipe_without_versions_is_refused(
    root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["look", "versions", str(tmp_path / "empty")]) == 78
    assert main(["look", "versions", root, "--recipe", "webb"]) == 78
    assert "recipe webb has not been published (published: corpus, small)" in capsys.readouterr().err
