"""A small root in which every document has a generated one: in shards, layers, rejects, caches, packed tokens, exports.

Each document has words of its own, and what is generated of it has them backwards: three of either in a row are found
in no other.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
from tokenizers import Tokenizer, models, pre_tokenizers

from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import LOCAL, parse_recipe
from pipeline_tasks.run.tasks.row_cache import CachedRows, KnownRows
from pipeline_tasks.schema import GENERATED, GENERATED_TEXTS
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests.chain import reply
from tests.erased_root import BUILT, DATASET, RECIPE, ErasedRoot, export
from tests.offspring_toys import MACHINE, UNFOLDS, WRITES, generated, written

DAY = "2026-11-19"
WORDS = 60

STEPS: Mapping[str, Mapping[str, Any]] = {
    "ingest": {},
    "extract": {"min_chars": 100},
    "dedup_exact": {"buckets": 1},
    "scrub_pii": {},
    WRITES: {},
    UNFOLDS: {},
    "decontaminate": {},
}


def make(folder: Path, documents: int = 12) -> ErasedRoot:
    """Refine so many documents with one generated of each, cache what was generated, build and export."""
    made = ErasedRoot(folder, _write_day(folder / "landing" / DAY, documents))
    words = sorted({word for text in made.texts.values() for word in text.split()})
    vocabulary = {word: rank for rank, word in enumerate(["</s>", "[pad]", "?", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(made.tokenizer))
    _refine(made)
    _cache(made)
    build(made)
    return made


def url_of(number: int) -> str:
    """Return the address of a source."""
    return f"https://site{number % 3}.example/{number}"


def offspring(url: str) -> str:
    """Return the name of the text that was generated of a source, among the texts of the root."""
    return f"{url} generated"


def rows(made: ErasedRoot, stage: str, *columns: str) -> list[dict[str, Any]]:
    """Return the rows that a stage kept."""
    manifest = read_manifest(made.root, version_log.current(made.root, RECIPE, DAY).manifests[stage])
    return [row for batch in read_shards(made.root, manifest.shards, columns or None) for row in batch.to_pylist()]


def _write_day(folder: Path, documents: int) -> dict[str, str]:
    """Write a day, of each source a record and one that stands for what is made of it; return the texts by name."""
    draws, texts, lines = random.Random(7), dict[str, str](), []
    for number in range(documents):
        url = url_of(number)
        text, other = (" ".join("".join(draws.choices("bcdfghklmn", k=8)) for _ in range(WORDS)) for _ in "ab")
        texts |= {url: text, offspring(url): written(text)}
        lines.append({"url": url, "text": text, "title": " ".join(text.split()[:3])})
        lines.append({"url": f"https:{MACHINE}{number}", "text": other})
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return texts


def _refine(made: ErasedRoot) -> None:
    named = {"root": made.root, "recipe": RECIPE, "snapshot": DAY}
    landed = reply("land", **named, input=str(made.folder / "landing" / DAY))
    parent, manifests = landed["manifest"], {"land": landed["manifest"]}
    for stage, params in STEPS.items():
        about = {"stage": stage, "params": params, "parent": parent, "engine": LOCAL}
        parent = manifests[stage] = reply("refine", **named, **about, landing=landed["landing"])["manifest"]
    reply("publish", **named, landing=landed["landing"], manifests=manifests, verdicts={})


def _cache(made: ErasedRoot) -> None:
    """Store what was generated as a task does, a segment for each half of the documents, and a vector of each text."""
    texts = [text for name, text in made.texts.items() if not name.endswith(" generated")]
    for half in (texts[::2], texts[1::2]):
        column = pa.array(half, pa.large_string())
        lists = pa.array([[generated(text)] for text in half], pa.list_(GENERATED))
        cached = CachedRows(made.root, f"cache/{WRITES}/small", [GENERATED_TEXTS], KnownRows(made.root, ()), "cpu")
        cached.add(pa.RecordBatch.from_pydict({"text": column, GENERATED_TEXTS: lists}))
        cached.store()


def build(made: ErasedRoot) -> None:
    """Build the dataset as its DAG does, and export it in the root."""
    built, named = parse_recipe(dict(BUILT), "corpus.yaml"), {"root": made.root, "recipe": DATASET, "snapshot": "build"}
    assert built.versions is not None
    parent = reply("compose", **named, versions=asdict(built.versions))["manifest"]
    manifests = {"compose": parent}
    for step in built.steps:
        params = {"tokenizer": str(made.tokenizer)} if step.stage == "tokenize" else dict(step.params)
        parent = manifests[step.stage] = reply("refine", **named, stage=step.stage, params=params, parent=parent)[
            "manifest"
        ]
    reply("publish", **named, manifests=manifests)
    export(made)
