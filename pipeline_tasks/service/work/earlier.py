"""What a run takes of earlier snapshots: the history that its stages read, and the manifests that gates learn from.

It is found once, when the snapshot lands, and stored in one object; tasks hand on its address. So what passes through
Airflow's database has the same size after a day and after a year.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from pipeline_tasks.cards import is_stage, stage_card
from pipeline_tasks.gate.suites import SNAPSHOTS
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.version_facts import is_partial, saved_history
from pipeline_tasks.sealed import path_of, reference, seal, sha256, split_reference, unseal
from pipeline_tasks.store import storage
from pipeline_tasks.store.once import Once
from pipeline_tasks.store.reading import read_manifest, read_named

FOLDER = "earlier"
"""Where the objects are, in the prefix of the landing or composition that they belong to: they go with it."""

_WAY_OUT = "clear the task `land` and what follows, or start the run again: it is found anew"


@dataclass(frozen=True, slots=True)
class Earlier:
    """References of manifests of the newest versions of earlier snapshots, oldest first.

    `history` are by stage those that saved history. `snapshots` are the manifests by stage of the last ones that gates
    learn from; what a partial version lacks is no norm, so it is none of them.
    """

    history: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    snapshots: tuple[Mapping[str, str], ...] = ()

    @property
    def previous(self) -> dict[str, str]:
        """The manifests of the last snapshot, by stage."""
        return dict(self.snapshots[-1]) if self.snapshots else {}

    @property
    def trailing(self) -> dict[str, list[str]]:
        """The manifests that gates learn from, by stage."""
        trailing: dict[str, list[str]] = {}
        for manifests in self.snapshots:
            for stage, referred in manifests.items():
                trailing.setdefault(stage, []).append(referred)
        return trailing


def earlier_than(root: str, recipe: str, snapshot: str) -> Earlier:
    """Return what a run of a snapshot takes of those before it.

    Entries of the log say which stages saved history; manifests are read for entries of an earlier release alone.
    """
    versions = version_log.earlier(root, recipe, snapshot)
    history: dict[str, list[str]] = {}
    for version in versions:
        for stage in _saved(root, version):
            history.setdefault(stage, []).append(version.manifests[stage])
    compared: list[Mapping[str, str]] = []
    for version in reversed(versions):
        if len(compared) < SNAPSHOTS and not _is_partial(root, version):
            compared.append(version.manifests)
    return Earlier({stage: tuple(manifests) for stage, manifests in history.items()}, tuple(reversed(compared)))


def _saved(root: str, version: Version) -> tuple[str, ...]:
    if version.saved is not None:
        return version.saved
    with_history = (stage for stage in version.manifests if is_stage(stage) and stage_card(stage).history)
    return saved_history({stage: read_manifest(root, version.manifests[stage]) for stage in with_history})


def _is_partial(root: str, version: Version) -> bool:
    if version.partial is not None:
        return version.partial
    return is_partial({stage: read_manifest(root, referred) for stage, referred in version.manifests.items()})


def store_earlier(root: str, earlier: Earlier, landed: str) -> str:
    """Store what a run takes of earlier snapshots beside a manifest, of what landed; return its reference."""
    body = seal(asdict(earlier))
    path = f"{path_of(landed).rpartition('/')[0]}/{FOLDER}/{sha256(body)[:32]}.json"
    storage.commit(storage.connect(root), path, body)
    return reference(path, sha256(body))


_ONCE: Once[Earlier] = Once(lambda earlier: 1 + sum(map(len, earlier.history.values())), 1 << 18)
"""What runs take of earlier snapshots, by root and reference."""


def read_earlier(root: str, referred: str) -> Earlier:
    """Return what was stored; ContractError if it is gone, or is not what was stored. A process reads it once."""
    return _ONCE.get((root, referred), lambda: _read(root, referred))


def _read(root: str, referred: str) -> Earlier:
    path, digest = split_reference(referred)
    body = read_named(root, path, digest, "what the run takes of earlier snapshots was removed", _WAY_OUT)
    fields = unseal(body, f"{root}/{path}", _WAY_OUT)
    history = {stage: tuple(manifests) for stage, manifests in fields["history"].items()}
    return Earlier(history, tuple(fields["snapshots"]))
