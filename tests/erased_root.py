"""A small root in which documents are in every kind of object: shards, layers, rejects, history, packed tokens, exports.

Each document has words of its own, so that three of them in a row are found in no other. Two days are refined, with
near duplicates, addresses that `scrub_pii` rewrites, and a compaction; a dataset is built of them, and exported in the
root as tokens and as texts.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from pipeline_tasks.engines import choose
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import LOCAL, Recipe, parse_recipe
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.upkeep import compact
from tests.chain import reply
from tests.root_search import Wanted

RECIPE, DATASET = "people", "corpus"
DAYS = ("2026-11-19", "2026-11-20")
DOCUMENTS, WORDS = 14, 60
MAIL = "jane.roe@corp.example"

STEPS: Mapping[str, Mapping[str, Any]] = {
    "ingest": {},
    "extract": {"min_chars": 100},
    "dedup_url": {},
    "dedup_exact": {"buckets": 1},
    "dedup_minhash": {"buckets": 1, "policy": ["longest", "lowest_id"]},
    "scrub_pii": {},
}

BUILT: Mapping[str, Any] = {
    "name": DATASET,
    "versions": {"recipe": RECIPE},
    "stages": {
        "tokenize": {},
        "select": {},
        "shuffle": {"seed": 3, "buckets": 3},
        "pack": {"method": "best_fit", "length": 64, "pad_id": 1},
    },
}

URLS = (
    "https://example.org/a%7Eb/./c/../Stra%C3%9Fe?q=1&utm_source=x",
    "https://b\u00fccher.example/Seite%2f1",
    f"https://mail.example/of/{MAIL}/page",
    "http://user:secret@plain.example:80/x",
)
"""Addresses in odd forms; those of the other documents are plain."""


@dataclass(frozen=True, slots=True)
class ErasedRoot:
    """The folder of a root, its landing and its tokenizer, and the text of each document by its address."""

    folder: Path
    texts: Mapping[str, str]

    @property
    def root(self) -> str:
        return str(self.folder / "root")

    @property
    def tokenizer(self) -> Path:
        return self.folder / "tokenizer.json"

    def wanted(self, *urls: str) -> Wanted:
        """The texts of documents, to be searched for."""
        return Wanted({url: self.texts[url] for url in urls}, self.tokenizer)


def make(folder: Path) -> ErasedRoot:
    """Write and refine two days, compact their history, and build a dataset of them."""
    made = land(folder)
    for day in DAYS:
        refine(made, day)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compact, "FANOUT", 2)
        assert compact.compact(made.root, choose.engine(LOCAL))
    build(made)
    return made


def land(folder: Path) -> ErasedRoot:
    """Write two days and a tokenizer; nothing is refined."""
    made = ErasedRoot(folder, _write_days(folder / "landing"))
    _write_tokenizer(made)
    return made


def refine(made: ErasedRoot, day: str) -> dict[str, Any]:
    """Refine a day as its DAG does."""
    named = {"root": made.root, "recipe": RECIPE, "snapshot": day}
    landed = reply("land", **named, input=str(made.folder / "landing" / day))
    earlier = reply("history", **named)
    parent, manifests, verdicts = landed["manifest"], {"land": landed["manifest"]}, {}
    for stage, params in STEPS.items():
        history = earlier["history"].get(stage, [])
        about = {"stage": stage, "params": params, "parent": parent, "history": history, "engine": LOCAL}
        parent = manifests[stage] = reply("refine", **named, **about, landing=landed["landing"])["manifest"]
    verdicts["scrub_pii"] = reply("judge", **named, manifest=parent, override="a test")["verdict"]
    return reply("publish", **named, landing=landed["landing"], manifests=manifests, verdicts=verdicts)


def ids(made: ErasedRoot) -> dict[str, str]:
    """Return the id of each document, by its address as it landed."""
    rows: dict[str, str] = {}
    for day in DAYS:
        manifest = read_manifest(made.root, version_log.current(made.root, RECIPE, day).manifests["extract"])
        for batch in read_shards(made.root, manifest.shards, ["url", "id"]):
            rows |= {str(row["url"]): str(row["id"]) for row in batch.to_pylist()}
    return rows


def words_of(made: ErasedRoot, url: str) -> set[str]:
    """Return the words that a document alone has."""
    return {word for word in made.texts[url].split() if "@" not in word}


def recipe() -> Recipe:
    return parse_recipe(dict(BUILT), "corpus.yaml")


def build(made: ErasedRoot) -> dict[str, Any]:
    """Build as the DAG does, and export in the root; return the reply of `publish`."""
    built, named = recipe(), {"root": made.root, "recipe": DATASET, "snapshot": "build"}
    assert built.versions is not None
    parent = reply("compose", **named, versions=asdict(built.versions))["manifest"]
    manifests = {"compose": parent}
    for step in built.steps:
        params = {"tokenizer": str(made.tokenizer)} if step.stage == "tokenize" else dict(step.params)
        request = {"stage": step.stage, "params": params, "parent": parent}
        parent = manifests[step.stage] = reply("refine", **named, **request)["manifest"]
    published = reply("publish", **named, manifests=manifests)
    export(made)
    return published


def export(made: ErasedRoot) -> None:
    """Export the newest version of the dataset in the root, as tokens and as texts."""
    number = version_log.current(made.root, DATASET).number
    exports = {"mds": 0, "text-jsonl": 0}
    reply("export", root=made.root, recipe=DATASET, version=number, exports=exports)


def address(day: int, number: int) -> str:
    """The address of a document that has a plain one."""
    return f"https://site{number % 3}.example/{day}/{number}"


def _write_days(landing: Path) -> dict[str, str]:
    """Write the days; return the texts by address, of a document that repeats most of another its own words alone."""
    draws, texts = random.Random(11), {}
    for day, name in enumerate(DAYS):
        lines = []
        for number in range(DOCUMENTS):
            url = URLS[number] if day == 0 and number < len(URLS) else address(day, number)
            words = ["".join(draws.choices("bcdfghklmnprstvz", k=7)) for _ in range(WORDS)]
            if number % 4 == 0:
                words.insert(30, MAIL)
            text = " ".join(words)
            texts[url] = text
            if number == DOCUMENTS - 1:
                texts[url] = " ".join(words[:6])
                text = f"{texts[address(day, number - 1)]} {texts[url]}"
            lines.append(json.dumps({"text": text, "url": url, "title": " ".join(words[3:7])}))
        (landing / name).mkdir(parents=True)
        (landing / name / "a.jsonl").write_text("\n".join(lines[:8]) + "\n")
        (landing / name / "b.jsonl").write_text("\n".join([*lines[8:], "{no JSON"]) + "\n")
    return texts


def _write_tokenizer(made: ErasedRoot) -> None:
    words = sorted({word for text in made.texts.values() for word in text.split()} | {"EMAIL"})
    vocabulary = {word: rank for rank, word in enumerate(["</s>", "[pad]", "?", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(made.tokenizer))
