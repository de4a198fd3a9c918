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

from tokenizers import Tokenizer, models, pre_tokenizers

from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import LOCAL, parse_recipe
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests.backwards import KIND, written
from tests.chain import reply
from tests.erased_root import BUILT, DATASET, RECIPE, ErasedRoot, export

DAY = "2026-11-19"
WORDS = 60

STEPS: Mapping[str, Mapping[str, Any]] = {
    "ingest": {},
    "extract": {"min_chars": 100},
    "dedup_exact": {"buckets": 1},
    "filter_language": {"keep": [], "threshold": 0},
    "scrub_pii": {},
    "decontaminate": {},
    "rephrase": {"prompts": {"plain": {"prompt": "rewrite"}}},
    "filter_generated": {"language": 1.0, "grounded": 0.0, "invented": 99},
    "scrub_generated": {},
    "decontaminate_generated": {},
}


def make(folder: Path, documents: int = 12) -> ErasedRoot:
    """Refine so many documents with one generated of each, build a dataset of both, and export it."""
    made = ErasedRoot(folder, _write_day(folder / "landing" / DAY, documents))
    words = sorted({word for text in made.texts.values() for word in text.split()})
    vocabulary = {word: rank for rank, word in enumerate(["</s>", "[pad]", "?", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(made.tokenizer))
    _refine(made)
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
    """Write a day of sources; return the texts by name, and those that will be generated."""
    draws, texts, lines = random.Random(7), dict[str, str](), []
    for number in range(documents):
        url = url_of(number)
        text = " ".join("".join(draws.choices("bcdfghklmn", k=8)) for _ in range(WORDS))
        texts |= {url: text, offspring(url): written(text)}
        lines.append({"url": url, "text": text, "title": " ".join(text.split()[:3])})
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return texts


def _refine(made: ErasedRoot) -> None:
    named = {"root": made.root, "recipe": RECIPE, "snapshot": DAY}
    (made.folder / "model").write_text("no weights")
    model = {"kind": KIND, "model": str(made.folder / "model")}
    landed = reply("land", **named, input=str(made.folder / "landing" / DAY))
    parent, manifests = landed["manifest"], {"land": landed["manifest"]}
    for stage, params in STEPS.items():
        given = {**params, "generator": model} if stage == "rephrase" else params
        about = {"stage": stage, "params": given, "parent": parent, "engine": LOCAL}
        parent = manifests[stage] = reply("refine", **named, **about, landing=landed["landing"])["manifest"]
    reply("publish", **named, landing=landed["landing"], manifests=manifests, verdicts={})


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
