"""A small root with every kind of object that Refinery stores, made by the stages themselves.

Three days of pages: the second supersedes documents of the first, the third is retracted. The history of the first two
is compacted. Every stage of the first day has a verdict; each day has rejected rows and a quarantined line.
One bucket is enough for most stages: `verify` runs over this root hundreds of times, and opens every file of it.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from pipeline_tasks.engines import choose
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import LOCAL
from pipeline_tasks.store.log_chain import dataset_log
from pipeline_tasks.upkeep import compact
from tests.chain import reply

RECIPE = "small"
DAYS = ("2026-11-19", "2026-11-20", "2026-11-21")
RETRACTED = DAYS[2]
STAGES = ("ingest", "extract", "dedup_exact", "dedup_minhash")
WORDS = [f"word{number}" for number in range(400)]


@dataclass(frozen=True, slots=True)
class SmallRoot:
    """The root, and the folder in which its days landed."""

    root: str
    landing: Path

    @property
    def tokenizer(self) -> str:
        """The path of a tokenizer that knows the words of the pages."""
        return str(self.landing.parent / "tokenizer.json")


def build(folder: Path) -> SmallRoot:
    """Write three days of pages below `folder`, refine and publish them, retract the last; return the root."""
    small = SmallRoot(str(folder / "root"), folder / "landing")
    _write_days(small.landing)
    _write_tokenizer(Path(small.tokenizer))
    for day in DAYS[:2]:
        refine(small, day)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compact, "FANOUT", 2)
        assert compact.compact(small.root, choose.engine(LOCAL))
    refine(small, RETRACTED)
    with Ledger.open(ledger_of(small.root)) as ledger:
        ledger.record_retraction(version_log.retract(small.root, RECIPE, RETRACTED, "a test"))
        ledger.record_log(small.root, dataset_log(RECIPE))
    return small


def refine(small: SmallRoot, day: str) -> Mapping[str, Any]:
    """Refine one day as its DAG does: land, each stage with its gate and all earlier days as history, publish."""
    named = {"root": small.root, "recipe": RECIPE, "snapshot": day}
    landed = reply("land", **named, input=str(small.landing / day))
    earlier = reply("history", **named)
    parent = landed["manifest"]
    manifests, verdicts = {"land": parent}, {}
    for stage, params in steps().items():
        history = earlier["history"].get(stage, [])
        request = {"stage": stage, "params": params, "parent": parent, "history": history, "engine": LOCAL}
        parent = _refined({**named, **request, "landing": landed["landing"]})
        manifests[stage] = parent
        if stage in judged_stages(day):
            previous = earlier["previous"].get(stage, "")
            judged = reply("judge", **named, manifest=parent, previous=previous, override="a test")
            verdicts[stage] = judged["verdict"]
    kept = {stage: manifests[stage] for stage in STAGES}
    verdicts["publish"] = reply("judge_snapshot", **named, manifests=kept, override="a test")["verdict"]
    return reply("publish", **named, landing=landed["landing"], manifests=manifests, verdicts=verdicts)


def judged_stages(day: str) -> tuple[str, ...]:
    """Return the stages of a day whose gates are asked: all of the first, two of the others.

    A verdict costs more than all else of such a day.
    """
    return STAGES if day == DAYS[0] else ("extract", "dedup_minhash")


def steps() -> dict[str, dict[str, Any]]:
    """The stages of the recipe, with their params."""
    params: dict[str, dict[str, Any]] = {stage: {} for stage in STAGES}
    params["extract"] = {"min_chars": 100}
    params["dedup_exact"] = {"buckets": 2}
    params["dedup_minhash"] = {"buckets": 1, "policy": ["longest", "lowest_id"]}
    return params


def _refined(request: dict[str, Any]) -> str:
    """Refine a stage, `ingest` in two partitions; return the path of its manifest."""
    if request["stage"] != "ingest":
        return str(reply("refine", **request)["manifest"])
    spans = reply("spans", root=request["root"], parent=request["parent"], stage="ingest", partitions=2)["spans"]
    for span in spans:
        reply("refine", **request, span=span)
    return str(reply("seal", stage=request, spans=spans)["manifest"])


def _write_days(landing: Path) -> None:
    """Write days that repeat each other's pages, some longer than before, one too short and one line that is damaged."""
    draws = random.Random(5)
    pages = [" ".join(draws.choices(WORDS, k=90)) for _ in range(16)]
    for number, day in enumerate(DAYS):
        (landing / day).mkdir(parents=True)
        texts = [page + " more" * (number * (rank % 3)) for rank, page in enumerate(draws.sample(pages, 10))]
        texts += ["short", texts[0]]
        lines = [
            json.dumps({"text": text, "url": f"https://example.org/{number}/{at}"}) for at, text in enumerate(texts)
        ]
        (landing / day / "a.jsonl").write_text("\n".join(lines[:6]) + "\n")
        (landing / day / "b.jsonl").write_text("\n".join([*lines[6:], "{no JSON"]) + "\n")


def _write_tokenizer(path: Path) -> None:
    vocabulary = {word: rank for rank, word in enumerate(["</s>", "?", "more", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(path))
