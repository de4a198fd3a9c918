"""A source: the days of a diary, one file of JSON lines each."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from refinery_sources.source import Flow, Occasion, Part, Received, Terms
from refinery_sources.web import Web
from refinery_sources.whole_part import write_whole


@dataclass(frozen=True, slots=True)
class Query:
    """The first `days` of a diary: a recipe may write the fields; `resolved` fills in the name of the snapshot."""

    days: int
    snapshot: str = ""

    @property
    def cursor(self) -> str:
        """Where a later pull goes on."""
        return str(self.days)

    @property
    def terms(self) -> Terms:
        """Where the terms are, and what they say."""
        return Terms("diary", "A diary of nobody; do as you like.")

    @property
    def typical_bytes(self) -> int:
        """Bytes of a day."""
        return 100

    def query(self) -> Mapping[str, object]:
        """Return what is asked, without secrets."""
        return {"source": "a_source", "days": self.days, "snapshot": self.snapshot}

    def resolved(self, occasion: Occasion) -> "Query":
        """Return the query with the name of its snapshot, which begins with that of the recipe."""
        return replace(self, snapshot=f"{occasion.name}-{self.days:04}")

    def parts(self, web: Web) -> Sequence[Part]:
        """Return the days; `web` asks a server for them, where there is one."""
        del web
        return [Part(f"day-{day}.jsonl", "diary", rows=1) for day in range(self.days)]

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        """Write a day, and count its rows: they are compared with those that the part promises."""
        del web
        rows = [{"url": f"https://diary.example/{part.name}", "text": f"Dear diary, this was {part.name}."}]
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        return replace(write_whole(data, part, partial, flow), rows=len(rows))


SOURCE = Query

FORM = {"days": {"title": "Days"}}
