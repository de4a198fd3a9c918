"""A training dataset that has documents of a retracted snapshot is named, until it is built without them."""

import json
import re
import shutil
from dataclasses import fields, replace
from pathlib import Path

import pyarrow.compute as pc
import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.inspect.versions.outlived import outlived, outlived_lines
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.takedowns import documents_of
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests.small_build import DATASET, build, copied, recipe
from tests.small_root import DAYS, RECIPE, SmallRoot

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def retracted(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> SmallRoot:
    """A root with a dataset of two days, of which the second was retracted after it."""
    small = copied(small_root, tmp_path_factory.mktemp("outlived"))
    build(small)
    assert main(["retract", DAYS[1], small.root, "--recipe", RECIPE, "--reason", "spam wave"]) == 0
    return small


@pytest.fixture
def small(retracted: SmallRoot, tmp_path: Path) -> SmallRoot:
    return copied(retracted, tmp_path)


def distinct_documents(root: str, day: str) -> int:
    version = version_log.current(root, DATASET)
    documents = documents_of({stage: read_manifest(root, path) for stage, path in version.manifests.items()})
    return len(
        {
            id_
            for batch in read_shards(root, documents.shards, ["id", "snapshot"])
            for id_ in batch.filter(pc.equal(batch["snapshot"], day))["id"].to_pylist()
        }
    )


def test_retract_and_status_name_a_dataset_until_it_is_built_again(
    small: SmallRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    """The retraction ended without a word on the dataset, and `status` had none either."""
    count = distinct_documents(small.root, DAYS[1])
    assert count
    said = f"{DATASET}@1 still has {count} documents of the retracted snapshot {DAYS[1]} of recipe {RECIPE}; without them: "
    own = f"`refinery build {small.root} --recipe {DATASET}.yaml` (give the path of the recipe's file)"
    assert main(["retract", DAYS[1], small.root, "--recipe", RECIPE]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == said + own
    assert main(["status", small.root, "--recipe", RECIPE]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == said + own
    assert main(["status", small.root, "--recipe", RECIPE, "--json"]) == 0
    [day] = [row for row in json.loads(capsys.readouterr().out) if row["snapshot"] == DAYS[1]]
    assert day["still_in"] == [{"recipe": DATASET, "number": 1, "documents": count}]
    build(small, recipe(mix={"by": "snapshot"}))
    assert list(outlived(small.root)) == []
    assert main(["status", small.root, "--recipe", RECIPE]) == 0
    assert "still has" not in capsys.readouterr().out


def test_a_copy_counts_once(small_root: SmallRoot, tmp_path: Path) -> None:
    """The first day's documents are used two or three times."""
    small = copied(small_root, tmp_path)
    build(small)
    version_log.retract(small.root, RECIPE, DAYS[0], "a test")
    [found] = outlived(small.root)
    assert found.documents == distinct_documents(small.root, DAYS[0])


def test_what_was_restored_is_not_named_but_what_was_replaced_is(small: SmallRoot) -> None:
    version_log.restore(small.root, RECIPE, DAYS[1])
    assert list(outlived(small.root)) == []
    version_log.retract(small.root, RECIPE, DAYS[1], "again")
    first = version_log.current(small.root, RECIPE, DAYS[0])
    better = {field.name: getattr(first, field.name) for field in fields(first) if field.name not in ("number", "at")}
    version_log.append(small.root, better | {"snapshot": DAYS[1]})
    [found] = outlived(small.root)
    assert found.source.snapshot == DAYS[1]


def test_a_dataset_that_cannot_be_read_is_still_named(small: SmallRoot) -> None:
    version = version_log.current(small.root, DATASET)
    shutil.rmtree(Path(small.root, path_of(version.manifests["shuffle"])).parent)
    [line] = outlived_lines(small.root, outlived(small.root))
    assert line.startswith(f"{DATASET}@1 still has documents of the retracted snapshot {DAYS[1]}")


@pytest.mark.parametrize(
    ("dataset", "source", "said"),
    [
        ("corpus", "web", r"them: `refinery build \S+`$"),
        ("mix", "ours", r"them: `refinery build \S+ --recipe mix.yaml`"),
        ("demo_corpus", "demo", r"them: `refinery build \S+ --recipe demo_corpus`$"),
        ("ours_corpus", "ours", r"them: the next `refinery run` of recipe ours builds it$"),
    ],
)
def test_the_command_is_the_one_that_builds_it(small: SmallRoot, dataset: str, source: str, said: str) -> None:
    [found] = outlived(small.root)
    other = replace(found, version=replace(found.version, recipe=dataset), source=replace(found.source, recipe=source))
    [line] = outlived_lines(small.root, [other])
    assert re.search(said, line), line
