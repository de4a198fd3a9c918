"""Runs every stage behind the one before it, over documents of a test's choice; a new stage runs with no params."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from refinery_models.topics import train_topics
from tokenizers import Tokenizer, models, pre_tokenizers

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.landing import listing
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import Refined, refine
from pipeline_tasks.run.tasks.task import StageIO, read_input
from pipeline_tasks.schema import VERDICT
from pipeline_tasks.scorers.topics import dump_topics
from pipeline_tasks.stages import NAMES
from pipeline_tasks.stages.filter_quality import FILTERS
from tests.archives import http, response
from tests.refining import commit_parent
from tests.stages import rephrasing
from tests.static_embeddings import write_embeddings

WORDS = ("garden", "soil", "engine", "fuel", "court", "judge", "poisoned")

PAGES = "<html><head><title>A page</title></head><body><article>{}</article></body></html>"


class Step(NamedTuple):
    """A stage that has run: its request, and what it committed."""

    stage: str
    request: RefineRequest
    done: Refined


def params(folder: Path) -> dict[str, dict[str, Any]]:
    """Write the models that stages need into a folder; return their params, by which no filter is left out."""
    model = write_embeddings(folder / "model", WORDS)
    vectors = np.eye(8)[:3]
    from pipeline_tasks.scorers.embedder import EmbeddingModel, name_of_vectors
    from pipeline_tasks.stage import FilePath

    rephrasing.install_here()
    name = name_of_vectors(EmbeddingModel(FilePath(model)))
    (folder / "topics.json").write_bytes(dump_topics(train_topics(vectors, ["a", "b", "c"], name, 3, 1)))
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(["</s>", "?", *WORDS])}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    item = {"question": "which of the two millers of the upper lake counted his eels twice before the thaw came"}
    (folder / "benchmark.jsonl").write_text(json.dumps(item) + "\n")
    words = str(folder / "words.txt")
    Path(words).write_text("slurword\nanother slur\n")
    return {
        "ingest": {"rights": True},
        "filter_language": {"keep": [], "unit": "paragraph", "foreign": "cut"},
        "filter_quality": {
            "profiles": [*FILTERS],
            "edit": True,
            "c4_badwords": {"bad_words": {"en": words}},
            "seeds": {"toxic_words": words},
        },
        "dedup_substrings": {"action": "cut"},
        "filter_toxicity": {"action": "redact"},
        "decontaminate": {"benchmarks": {"b": str(folder / "benchmark.jsonl")}},
        "rephrase": {"generator": rephrasing.model(folder), "prompts": {"rewrite": {}}},
        "filter_generated": {"copied": 1.0},
        "decontaminate_generated": {"benchmarks": {"b": str(folder / "benchmark.jsonl")}},
        "embed": {"model": model},
        "topics": {"topics": str(folder / "topics.json")},
        "tokenize": {"tokenizer": str(folder / "tokenizer.json"), "eos": "</s>"},
        "pack": {"length": 64},
    }


def land(root: Path, folder: Path, texts: Sequence[str]) -> str:
    """Land each text as a page of its own, in a paragraph of HTML and as plain text; return the manifest's path."""
    folder.mkdir()
    plain = "Content-Type: text/plain; charset=utf-8"
    records = [
        response(f"https://text.example/{at}", http(text.encode(), headers=plain)) for at, text in enumerate(texts)
    ]
    pages = [PAGES.format(f"<p>{text}</p>").encode() for text in texts]
    records += [response(f"https://page.example/{at}", http(page)) for at, page in enumerate(pages)]
    (folder / "a.warc").write_bytes(b"".join(records))
    return listing.land(str(root), str(folder))[0]


def chain(root: Path, parent: str, landing: str, given: Mapping[str, Mapping[str, Any]]) -> Iterator[Step]:
    """Run each stage over all rows that the one before it had, kept or rejected."""
    for stage in NAMES:
        request = RefineRequest(str(root), stage, given.get(stage, {}), parent, landing=landing)
        done = refine(request, engine("local"))
        yield Step(stage, request, done)
        parent = done.path
        if stage not in ("ingest", "dedup_exact"):  # pages are in landed files, and no stage behind takes duplicates
            parent = commit_parent(root, [all_rows(root, done.manifest, landing)], f"by_{stage}")


def all_rows(root: Path, manifest: Manifest, landing: str) -> pa.Table:
    """Return the rows that a stage kept or rejected, with the columns of those that it kept; all of them are English.

    So the words of a lexicon, and rules of a language, are looked for in texts of whatever signs.
    """
    stage_io = StageIO(str(root), manifest.stage, landing=landing)
    shards = [*manifest.shards, *manifest.rejects]
    tables = [pa.Table.from_batches(list(read_input(stage_io, shard))) for shard in shards]
    whole = pa.concat_tables([table for table in tables if len(table)] or tables[:1], promote_options="default")
    names = [name for name in tables[0].schema.names if name not in VERDICT.names]
    whole = whole.select(names)
    if "language" in names:
        whole = whole.set_column(names.index("language"), "language", pa.array(["en"] * len(whole)))
    return whole
