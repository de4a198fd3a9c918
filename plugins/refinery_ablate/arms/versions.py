"""Finds the version of a training dataset that an arm is, as long as its root is there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.cards import has_sequences, one_that, plans_mixture
from pipeline_tasks.inspect.recipe.choices import choices_behind
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.datasets.building import plan_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.store.reading import read_manifest
from refinery_ablate.job import Arm


@dataclass(frozen=True, slots=True)
class ArmVersion:
    """The root of an arm, and its version there."""

    root: str
    version: Version

    def made_from(self) -> tuple[str, ...]:
        """Return the recipes of its snapshots, sorted."""
        composed = read_manifest(self.root, self.version.manifests[COMPOSE])
        return tuple(sorted({version["recipe"] for version in composed.params["versions"]}))

    def fingerprint(self) -> str:
        """Return the fingerprint of its packed sequences, which follows from all that it was made from."""
        manifests = self.version.manifests
        return read_manifest(self.root, one_that(has_sequences, manifests)).fingerprint

    def choices(self) -> Mapping[str, Mapping[str, str]]:
        """Return what its recipe and those of its snapshots chose, by their names."""
        return choices_behind(self.root, self.version)

    def mixed_by(self) -> str:
        """Return the column of its mixture, "" without one."""
        return "".join(str(mixed.params.get("by", "")) for mixed in self._mixed().values())

    def groups(self) -> list[dict[str, Any]]:
        """Return the groups of its mixture, each with `group`, `documents` and tokens `taken`; none without one."""
        return plan_of(self.root, self._mixed())

    def _mixed(self) -> dict[str, Manifest]:
        """Return the manifest with the plan of its mixture, by its stage; none without one."""
        manifests = self.version.manifests
        return {stage: read_manifest(self.root, manifests[stage]) for stage in manifests if plans_mixture(stage)}


def arm_version(arm: Arm) -> ArmVersion | None:
    """Return the version that an arm was when the comparison was planned; None where its root or version is gone."""
    return version_named(arm.name, arm.uri)


def version_named(dataset: str, uri: str) -> ArmVersion | None:
    """Return the version of ROOT/NAME@VERSION whose files are at a URI; None where its root or version is gone.

    `latest` may be another one now than the one with these files. ContractError for a damaged log.
    """
    root, _, named = dataset.rstrip("/").rpartition("/")
    recipe = named.partition("@")[0]
    own = [version for version in version_log.versions(root, recipe) if uri.endswith(f"/{version.prefix}")]
    return ArmVersion(root, own[-1]) if own else None
