"""Every recipe that we ship refines ordinary data to a version, with no gate refusing: what a newcomer runs first."""

import json
import random
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_tasks.demo import FOLDER
from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.demo.prose import english
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import RECIPES, recipe_names
from pipeline_tasks.store.reading import read_manifest
from tests.commands import Refinery

pytestmark = pytest.mark.slow

DOCUMENTS = 600


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's crawl, a fifth of it, with its evaluation questions."""
    folder = tmp_path_factory.mktemp("crawl")
    write_crawl(folder, scale=0.2)
    return folder


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset as the Hugging Face Hub has it: two files of a split, and what describes them.

    Of seven documents one is a near duplicate of the one before, and of thirty one is its copy.
    """
    folder = tmp_path_factory.mktemp("hub") / "prose"
    (folder / "data").mkdir(parents=True)
    for name in ("README.md", "LICENSE", ".gitattributes"):
        (folder / name).write_text("# Prose\n")
    infos = {"default": {"features": {"text": {"dtype": "string"}}, "splits": {"train": {"num_examples": DOCUMENTS}}}}
    (folder / "dataset_infos.json").write_text(json.dumps(infos))
    texts = list(prose())
    for part in range(2):
        rows = [{"text": text, "url": f"https://example.org/{part}/{at}"} for at, text in enumerate(texts[part::2])]
        pq.write_table(pa.Table.from_pylist(rows), folder / "data" / f"train-0000{part}-of-00002.parquet")
    return folder


def prose() -> Iterator[str]:
    """Yield documents of real paragraphs, with near duplicates and copies of them among them."""
    draw = random.Random(20)
    paragraphs = list(chain.from_iterable(english().values()))
    draw.shuffle(paragraphs)
    text = ""
    for number in range(DOCUMENTS):
        if number % 7 == 1:
            text += " Readers may write to the author about it."
        elif number % 30 != 2:
            text = "\n\n".join(paragraphs[number * 6 : number * 6 + 6])
        yield text


def shipped(name: str, folder: Path, crawl: Path) -> Path:
    """Return a copy of a recipe with the questions of a crawl."""
    copy = folder / f"{name}.yaml"
    copy.write_text((RECIPES / copy.name).read_text().replace(f"{FOLDER}/crawl", str(crawl)))
    return copy


def published(refinery: Refinery, recipe: Path, snapshot: Path) -> version_log.Version:
    """Refine a snapshot by a recipe; return the version that it is published as."""
    root = recipe.parent / "root"
    done = refinery("run", "--input", snapshot, "--output", root, "--recipe", recipe, "--engine", "local")
    assert done.returncode == 0, done.stderr
    return version_log.current(str(root), recipe.stem, snapshot.name)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "web" else pytest.mark.nightly) for name in recipe_names()]
)
def test_a_shipped_recipe_refines_a_folder_of_the_hub(
    name: str, tmp_path: Path, hub: Path, crawl: Path, refinery: Refinery
) -> None:
    version = published(refinery, shipped(name, tmp_path, crawl), hub)
    near = read_manifest(str(tmp_path / "root"), version.manifests["dedup_minhash"])
    assert sum(near.rejected.values()) > 0
    assert version.documents > DOCUMENTS / 2


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.nightly if name == "demo" else ()) for name in recipe_names()],
)
def test_a_shipped_recipe_refines_the_demo(name: str, tmp_path: Path, crawl: Path, refinery: Refinery) -> None:
    assert published(refinery, shipped(name, tmp_path, crawl), crawl / "2026-11-19").documents > 0


@pytest.mark.nightly
@pytest.mark.parametrize("name", recipe_names())
def test_a_shipped_recipe_refines_a_real_crawl(
    name: str, tmp_path: Path, crawl: Path, shared_data: Path, refinery: Refinery
) -> None:
    """Only here do the gates judge real pages by the bounds that we ship; a recipe takes a minute or two."""
    recipe = shipped(name, tmp_path, crawl)
    for snapshot in sorted((shared_data / "snapshots").glob("dev-*")):
        assert published(refinery, recipe, snapshot).documents > 0
