"""A source: the days of a diary, one file of JSON lines each."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline_tasks.sources.source import Flow, Occasion, Part, Received, Terms
from pipeline_tasks.sources.web import Web
from pipeline_tasks.sources.whole_part import write_whole


@dataclass(frozen=True, slots=True)
class Diary:
    """The first `days` of a diary."""

    days: int
    snapshot: str = ""

    @property
    def cursor(self) -> str:
        return str(self.days)

    @property
    def terms(self) -> Terms:
        return Terms("diary", "A diary of nobody; do as you like.")

    @property
    def typical_bytes(self) -> int:
        return 100

    def query(self) -> Mapping[str, Any]:
        return {"source": "diary", "days": self.days, "snapshot": self.snapshot}

    def resolved(self, occasion: Occasion) -> "Diary":
        return replace(self, snapshot=f"{occasion.name}-{self.days:04}")

    def parts(self, web: Web) -> Sequence[Part]:  # noqa: ARG002 -- a source's signature
        return [Part(f"day-{day}.jsonl", "diary", rows=1) for day in range(self.days)]

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:  # noqa: ARG002 -- as above
        row = {"url": f"https://diary.example/{part.name}", "text": f"Dear diary, this was {part.name}."}
        return replace(write_whole(json.dumps(row).encode() + b"\n", part, partial, flow), rows=1)


FORM = {"days": {"title": "Days"}}
