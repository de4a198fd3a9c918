"""Declares the subject that facts are computed from, and the family of facts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pipeline_tasks.cards import stage_card
from pipeline_tasks.gate.estimates import Facts
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.stage import Stage
from pipeline_tasks.store.reading import parent_of

EMPTY: Mapping[str, Any] = {"kind": "name", "count": 0, "bins": {}}
"""The profile of a column that was not profiled."""


@dataclass(frozen=True)
class Subject:
    """A committed manifest, and the same stage's manifests of earlier snapshots.

    `previous` is that of the last published snapshot; `trailing` are those of the last ones, in order. `spent` has what
    was spent on the snapshot so far, by the names of these facts.
    """

    root: str
    manifest: Manifest
    previous: Manifest | None = None
    trailing: tuple[Manifest, ...] = ()
    spent: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def card(self) -> Stage[Any]:
        """The card of the manifest's stage."""
        return stage_card(self.manifest.stage)

    @cached_property
    def parent(self) -> Manifest | None:
        """The manifest that the stage refined; None when it is gone."""
        return parent_of(self.root, self.manifest)


@dataclass(frozen=True, slots=True)
class Family:
    """Facts that are computed together: `meanings` has a sentence for each name; `<...>` is a placeholder."""

    compute: Callable[[Subject], Facts]
    meanings: Mapping[str, str]


def profiles_of(manifest: Manifest, rows: str = "kept") -> Mapping[str, Any]:
    """Return the column profiles of `kept` rows or `rejects`, by column."""
    profiles: Mapping[str, Any] = manifest.metrics.get(rows, {})
    return profiles
