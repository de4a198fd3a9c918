"""What says that a document was generated leaves with it, and mixtures take as much of it as is asked for."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard

from pipeline_tasks.cli.main import main
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import LOCAL
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import read_history, read_manifest, read_shards
from tests import generated_root
from tests.backwards import LICENSE, installed
from tests.chain import reply
from tests.erased_root import DATASET, ErasedRoot

pytestmark = pytest.mark.slow

DOCUMENTS, TOKENS = 12, generated_root.WORDS + 1


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ErasedRoot]:
    folder = tmp_path_factory.mktemp("exported")
    with installed(folder / "site"):
        yield generated_root.make(folder, DOCUMENTS)


def test_texts_have_their_source_and_their_model(made: ErasedRoot) -> None:
    rows = []
    for file in Path(made.root).rglob("*.jsonl.zst"):
        with file.open("rb") as stream, zstandard.ZstdDecompressor().stream_reader(stream) as plain:
            rows += [json.loads(line) for line in plain.read().splitlines()]
    assert len(rows) == 2 * DOCUMENTS
    sources = {row["id"]: row for row in rows if row["origin"] == "source"}
    generated = [row for row in rows if row["origin"] == "generated"]
    assert {row["parent"] for row in generated} == sources.keys()
    for row in generated:
        assert row["generation"]["model_license"] == LICENSE
        assert row["url"] == sources[row["parent"]]["url"]
    assert not any(row["generation"] for row in sources.values())


@pytest.mark.parametrize("recipe", [(), ("--recipe", DATASET)], ids=["all", "dataset"])
def test_the_hub_has_the_columns_and_counts_by_model(recipe: tuple[str, ...], made: ErasedRoot, tmp_path: Path) -> None:
    assert main(["export", made.root, "--format", "hub", "--to", str(tmp_path / "hub"), *recipe]) == 0
    kept = [pq.read_table(path) for path in (tmp_path / "hub/data").glob("kept-*")]
    origins = Counter(name for table in kept for name in table["origin"].to_pylist())
    assert origins == {"source": DOCUMENTS, "generated": DOCUMENTS}
    assert {"parent", "generation"} <= set(kept[0].column_names)
    model = next(filter(None, (row for table in kept for row in table["generation"].to_pylist())))["model"]
    assert f"| `{model}` | {DOCUMENTS} |" in (tmp_path / "hub/README.md").read_text()


def test_the_card_of_a_dataset_counts_what_was_generated(made: ErasedRoot) -> None:
    version = version_log.current(made.root, DATASET)
    card = Path(made.root, version.prefix, "README.md").read_text()
    assert f"{DOCUMENTS} of the {2 * DOCUMENTS} documents" in card


@pytest.mark.parametrize(
    ("params", "generated"),
    [
        ({"tokens": {"generated": 5 * TOKENS}, "unlisted": "keep"}, 5),
        ({"weights": {"source": 3, "generated": 1}}, 4),
        ({"weights": {"source": 1}}, 0),
    ],
)
def test_a_mixture_takes_a_share_of_generated_tokens(
    params: dict[str, object], generated: int, made: ErasedRoot
) -> None:
    parent = version_log.current(made.root, DATASET).manifests["select"]
    about = {"recipe": DATASET, "snapshot": "build", "engine": LOCAL, "stage": "mix"}
    mixed = reply("refine", root=made.root, **about, params={"by": "origin", **params}, parent=path_of(parent))
    manifest = read_manifest(made.root, mixed["manifest"])
    tokens = Counter[str]()
    for batch in read_shards(made.root, manifest.shards, ["origin", "n_tokens"]):
        for row in batch.to_pylist():
            tokens[row["origin"]] += row["n_tokens"]
    assert tokens["source"] == DOCUMENTS * TOKENS
    assert 0 <= generated * TOKENS - tokens["generated"] <= TOKENS * (generated > 0)
    plan = {row["group"]: row for batch in read_history(made.root, manifest, "plan") for row in batch.to_pylist()}
    assert plan["generated"]["available"] == DOCUMENTS * TOKENS
    assert plan["generated"]["taken"] == tokens["generated"]
