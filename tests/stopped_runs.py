"""Runs that stop: refused by a gate, failed in a stage, or cut off, by the requests that a DAG's tasks make."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline_tasks.ledger import Ledger, RunFailure, ledger_of
from tests.chain import reply
from tests.small_root import WORDS

RECIPE, DAY, LATER = "small", "2026-11-19", "2026-11-20"
STAGES: Mapping[str, Mapping[str, Any]] = {
    "ingest": {},
    "extract": {"min_chars": 100},
    "dedup_exact": {"buckets": 1},
}
REFUSING = {"retention": {"critical": {"max_value": 0.5}}}
"""Bounds that no day here keeps."""


@dataclass(slots=True)
class Runs:
    """A root below a folder, and runs into it."""

    folder: Path
    recipe: str = RECIPE
    params: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def root(self) -> str:
        return str(self.folder / "root")

    def run(self, *, day: str = DAY, until: str = "publish", refused_by: str = "", override: str = "a test") -> None:
        """Refine a day up to a stage with its gate, or until a gate refuses; publish if nothing stops it."""
        named = {"root": self.root, "recipe": self.recipe, "snapshot": day}
        landed = reply("land", **named, input=str(self._landing(day)))
        manifests, verdicts = {"land": landed["manifest"]}, {}
        about = {**named, "landing": landed["landing"], "engine": "local"}
        for stage, params in STAGES.items():
            parent = list(manifests.values())[-1]
            request = {**about, "stage": stage, "params": self.params.get(stage, params), "parent": parent}
            manifests[stage] = reply("refine", **request)["manifest"]
            asked = {"bounds": REFUSING} if stage == refused_by else {"override": override}
            judged = reply("judge", **named, manifest=manifests[stage], **asked)
            verdicts[stage] = judged["verdict"]
            if judged["outcome"] == "refuse" or stage == until:
                return
        verdicts["publish"] = reply("judge_snapshot", **named, manifests=manifests, override=override)["verdict"]
        reply("publish", **named, landing=landed["landing"], manifests=manifests, verdicts=verdicts)

    def fail(self, task: str, message: str, *, day: str = DAY, error: str = "ContractError") -> None:
        """Record what the callback of a failed task records."""
        with Ledger.open(ledger_of(self.root)) as ledger:
            ledger.record_failure(self.root, RunFailure(self.recipe, day, task, error, message))

    def _landing(self, day: str) -> Path:
        landing = self.folder / "landing" / day
        if not landing.exists():
            landing.mkdir(parents=True)
            draws = random.Random(day)
            texts = ["short", *(" ".join(draws.choices(WORDS, k=60)) for _ in range(19))]
            lines = [json.dumps({"text": text, "url": f"https://a.org/{at}"}) for at, text in enumerate(texts)]
            (landing / "a.jsonl").write_text("\n".join(lines) + "\n")
        return landing
