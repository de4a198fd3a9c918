"""A source that is taken down and erased takes what was generated of it out of every object, and nothing else."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import JobLost
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import LOCAL
from pipeline_tasks.run.tasks.row_cache import cache_of, parts_of, store_rows
from pipeline_tasks.sealed import path_of
from tests import generated_root
from tests.backwards import KIND, installed
from tests.chain import reply
from tests.erased_root import RECIPE, ErasedRoot
from tests.erased_sources import measured
from tests.generated_root import DAY, STEPS, offspring, rows, url_of
from tests.root_search import search
from tests.upkeep.test_erasing_meanwhile import held

pytestmark = pytest.mark.slow

WHY = ("--reason", "a letter", "--override", "takedown=a test", "--engine", "local")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ErasedRoot]:
    """A root that no test changes."""
    folder = tmp_path_factory.mktemp("offspring")
    with installed(folder / "site"):
        yield generated_root.make(folder)


@pytest.fixture
def root(made: ErasedRoot, tmp_path: Path) -> ErasedRoot:
    shutil.copytree(made.root, tmp_path / "root")
    shutil.copy(made.tokenizer, tmp_path / "tokenizer.json")
    return replace(made, folder=tmp_path)


def forget(root: ErasedRoot, *words: str) -> None:
    assert main(["takedown", root.root, *words, *WHY]) == 0
    assert main(["erase", root.root, "--by", "a steward"]) == 0
    assert [str(problem) for problem in verify(root.root, Scope()).findings.problems] == []


def left(root: ErasedRoot) -> dict[str, set[str]]:
    """Return which texts each object has."""
    return search(Path(root.root), root.wanted(*root.texts), ("tokenizers/",))


def ids(root: ErasedRoot) -> dict[str, str]:
    """Return the ids of documents by the names of their texts."""
    named = {text: name for name, text in root.texts.items()}
    return {
        named[row["text"]]: row["id"] for row in rows(root, "filter_generated", "id", "text") if row["text"] in named
    }


def test_every_kind_of_object_has_generated_texts(made: ErasedRoot) -> None:
    having = {path for path, texts in left(made).items() if any(name.endswith(" generated") for name in texts)}
    assert len({path.split("/")[0] for path in having}) >= 6, "layers, shards, caches, tokens, packed tokens, exports"


@pytest.mark.parametrize("kind", ["--doc", "--url", "--site"])
def test_a_source_takes_its_offspring_out_of_every_object(root: ErasedRoot, kind: str) -> None:
    gone = [url_of(number) for number in (range(0, 12, 3) if kind == "--site" else (4,))]
    forget(root, kind, {"--doc": ids(root)[gone[0]], "--url": gone[0], "--site": "site0.example"}[kind])
    names = {name for texts in left(root).values() for name in texts}
    assert names == root.texts.keys() - {name for url in gone for name in (url, offspring(url))}


def test_a_generated_document_alone_leaves_its_source(root: ErasedRoot) -> None:
    one = offspring(url_of(5))
    forget(root, "--doc", ids(root)[one])
    names = {name for texts in left(root).values() for name in texts}
    assert names == root.texts.keys() - {one}


def test_many_sources_leave_no_offspring_in_any_object(tmp_path: Path) -> None:
    found = measured(tmp_path, 40, 30)
    assert found["objects_before"] > 10
    assert (found["left"], found["kept"], found["problems"]) == (0, found["due"], 0)
    assert found["due"] == 20


def test_what_a_killed_run_wrote_of_a_source_is_erased(root: ErasedRoot) -> None:
    """Its parts are in no table: what they have is known to nobody but the run."""
    folder = parts_of(cache_of("rephrase", "generated"), "ab" * 16)
    table = pa.table({"key": ["1" * 32], "written": [{"text": "other words for it"}], "hardware": ["cpu"]})
    paths = [Path(root.root, path) for path in store_rows(root.root, folder, table)]
    assert all(path.exists() for path in paths)
    forget(root, "--url", url_of(1))
    assert not any(path.exists() for path in paths)


def test_a_run_that_wrote_of_a_source_before_its_erasure_leaves_no_cache(
    root: ErasedRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = version_log.current(root.root, RECIPE, DAY)
    model = {"kind": KIND, "model": str(root.folder / "model")}
    (root.folder / "model").write_text("other weights, of which no cache has anything")
    named = {"root": root.root, "recipe": RECIPE, "snapshot": DAY, "engine": LOCAL, "stage": "rephrase"}
    asked = {"params": {**STEPS["rephrase"], "generator": model}, "parent": path_of(version.manifests["decontaminate"])}
    held(monkeypatch, "rephrase", lambda: forget(root, "--url", url_of(1)), behind=True)
    with pytest.raises(JobLost, match="erased while a task read them"):
        reply("refine", **named, **asked)
    assert not {name for texts in left(root).values() for name in texts} & {url_of(1), offspring(url_of(1))}
