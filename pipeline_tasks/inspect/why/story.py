"""All that is known of what is sought, and which of it who asks may see."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pipeline_tasks.inspect.document import KEPT
from pipeline_tasks.inspect.why.records import Reading, Record, Snapshot
from pipeline_tasks.inspect.why.sought import Sought
from pipeline_tasks.inspect.why.standing import ERASED, GONE, IN, TRIAL, Replaced, Taken


@dataclass(frozen=True, slots=True)
class Story:
    """All that is known of what is sought.

    `stands` says of each record how it stands; of the snapshots that are `unknown` nothing could be looked at.
    """

    wanted: Sought
    snapshots: Sequence[Snapshot]
    records: Sequence[Record]
    stands: Sequence[str]
    replaced: Sequence[Replaced]
    takedowns: Sequence[Taken]
    uses: Sequence[dict[str, object]]
    nearest: Sequence[dict[str, object]]
    unknown: Sequence[Snapshot]
    reading: Reading
    kept_only: bool

    @property
    def of_kept(self) -> "Story":
        """It as who sees what was kept may see it: its verdict is the same, and why a document is gone is not told."""
        stands = [how if how in (IN, TRIAL) else GONE for how in self.stands]
        return replace(self, stands=stands, replaced=(), takedowns=())

    @property
    def published(self) -> list[Record]:
        """The records that the dataset has."""
        return self.that_stand(IN)

    @property
    def generated(self) -> list[Record]:
        """The records that the dataset has of texts that were generated of what is sought."""
        made = [record for record in self.published if record.is_generated]
        if self.wanted.kind == "address":
            return made
        return [
            record for record in made if self.wanted.kind == "document" and not record.id.startswith(self.wanted.value)
        ]

    def that_stand(self, how: str) -> list[Record]:
        """Return the records that stand so."""
        return [record for record, stands in zip(self.records, self.stands, strict=True) if stands == how]

    @property
    def rows(self) -> list[dict[str, object]]:
        """The records as JSON has them; what was kept, and is erased, is so."""
        erased = {place for taken in self.takedowns if taken.state == ERASED for place in taken.holds}
        rows = [{**record.facts, "stands": stands} for record, stands in zip(self.records, self.stands, strict=True)]
        return [
            row | {"outcome": ERASED} if place in erased and row["outcome"] == KEPT else row
            for place, row in enumerate(rows)
        ]

    def subject(self, taken: Taken) -> str:
        """Return what a takedown holds of: it, some of its documents, or, if those are elsewhere too, what it names."""
        kept = {place for place, record in enumerate(self.records) if record.outcome == KEPT}
        if kept <= taken.holds:
            return "It"
        held = named(self.records[place] for place in sorted(taken.holds))
        if held and not {*held} & {*named(self.published)}:
            return f"Document {listed(held)}"
        return f"The {' and the '.join(f'{kind} {value}' for kind, value in taken.of.items())}"


def named(records: Iterable[Record]) -> list[str]:
    """Return the documents of records by id, those without one by address."""
    return [*dict.fromkeys(record.id or record.url for record in records)]


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return the first of names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
