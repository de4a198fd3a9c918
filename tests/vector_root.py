"""A root with published snapshots whose documents have vectors by a small model, and what a search should find there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.superseded import SUPERSEDED, publish_superseded
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.store.reading import read_committed
from pipeline_tasks.text.near.vectors import unpacked
from tests import refining
from tests.documents import documents
from tests.scorers.networks import WORDS, static_folder

RECIPE = "web"
DAYS = ("2026-11-19", "2026-11-20", "2026-11-21")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class VectorRoot:
    """A root, the folder of the model of its recipe, and the store of its vectors."""

    root: str
    model: str
    store: str = ""

    def publish(
        self,
        snapshot: str,
        texts: Sequence[str],
        superseded: Sequence[Row] = (),
        model: str = "",
        parents: Sequence[str | None] = (),
    ) -> None:
        """Embed texts as a snapshot and publish them; `superseded` are rows of `SUPERSEDED` that it takes out.

        With `parents` they are generated documents, but for those of None.
        """
        urls = [f"https://site{at % 3}.example/{snapshot}/{at}" for at in range(len(texts))]
        languages = pa.array([("en", "de")[at % 2] for at in range(len(texts))], pa.string())
        more = {"parent": pa.array(parents, pa.string())} if parents else {}
        table = documents(texts, urls, language=languages, **more)
        named = table.set_column(1, "snapshot", pa.array([snapshot] * len(texts), pa.string()))
        parent = refining.commit_parent(Path(self.root), [named.slice(0, 7), named.slice(7)], "scrub_pii")
        path, _ = refining.refined(Path(self.root), "embed", parent, {"model": model or self.model})
        self.append(snapshot, path, superseded)

    def append(self, snapshot: str, path: str, superseded: Sequence[Row] = ()) -> None:
        """Append a version of a manifest to the log."""
        rows = pa.Table.from_pylist([dict.fromkeys(SUPERSEDED.names) | row for row in superseded], SUPERSEDED)
        digest = read_committed(self.root, path)[1]
        prefix = f"publish/{digest_of([path, rows.to_pylist()])[:24]}"
        published = publish_superseded(self.root, prefix, snapshot, iter(rows.to_batches()), {})
        fields = {
            "recipe": RECIPE,
            "snapshot": snapshot,
            "landing": "file:///landing",
            "manifests": {"embed": f"{path}@sha256:{digest}"},
            "verdicts": {},
            "prefix": prefix,
            "documents": 1,
            "tokens": 0,
            "sequences": 0,
            "files": published.files,
            **published.facts,
        }
        version_log.append(self.root, fields)

    def stored(self, snapshot: str) -> dict[str, Row]:
        """The documents of a snapshot's version that have a vector, by id."""
        version = version_log.current(self.root, RECIPE, snapshot)
        rows = refining.rows(Path(self.root), read_committed(self.root, version.refined)[0]).to_pylist()
        return {row["id"]: row for row in rows if row["embedding"]}


def texts(seed: int, count: int) -> list[str]:
    """Texts of ten words, no two of which have the same words as often."""
    draws = np.random.default_rng(seed)
    return [f"{' '.join(WORDS[at] for at in draws.integers(0, 10, 12 + row % 9))} {seed} {row}" for row in range(count)]


def vector_root(folder: Path, days: Sequence[str] = DAYS[:2], count: int = 20, store: str = "") -> VectorRoot:
    """Make a root with so many documents a day; `store` is that of its vectors, "" for that below the root."""
    made = VectorRoot(str(folder / "root"), static_folder(folder / "model"), store)
    for seed, day in enumerate(days):
        made.publish(day, texts(seed, count))
    return made


def vector_of(row: Row) -> npt.NDArray[np.float64]:
    return unpacked(pa.array([row["embedding"]], pa.large_binary()))[0]


def by_hand(rows: Sequence[Row], vector: npt.NDArray[np.float64]) -> list[tuple[float, str]]:
    """The rounded cosine of each row with a vector and its id, the most similar first."""
    cosines = [
        float(own @ vector / np.sqrt((own @ own) * (vector @ vector))) for own in (vector_of(row) for row in rows)
    ]
    return sorted(((round(value, 6), row["id"]) for value, row in zip(cosines, rows, strict=True)), reverse=True)
