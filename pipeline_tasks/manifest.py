"""Manifests: what a stage wrote, from what, and where every row went."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Literal

import pyarrow as pa
import zstandard

from pipeline_tasks.constraints import OMITTED
from pipeline_tasks.errors import ContractError, cause
from pipeline_tasks.schema import N_GENERATED
from pipeline_tasks.sealed import digest_of, parse, reference, require_seal, seal, sha256
from pipeline_tasks.stage import WHOLE, Conserved, Shard, Shards

FORMAT = 5
"""Version of the manifest's own layout, stored as `format`; part of every fingerprint."""

READ = (4, FORMAT)
"""Formats that are read. Format 4 had the whole writer and each snapshot of history in its fingerprint."""

WRITER = f"pyarrow-{pa.__version__} zstandard-{zstandard.__version__}"
"""What writes shards: their bytes depend on it, which digests name. Of identity is what decides rows (`rows_by`)."""

NAMED = 32
"""Digits of its digest that a shard is named by."""

Tally = Mapping[str, int]

PARTITION = "error:partition"
"""The reason of rows that were quarantined with their partition, because it failed every try."""

PARTIAL = "partial-"
"""What the name of a partial manifest has before the digest of what it lacks."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The only thing that flows between tasks, by path: one stage's output over the shards that it covers.

    What is `due` is `accounted` for: `rows_in == rows kept + rejected + quarantined`, or copies or tokens, or rows and
    offspring, for a stage that conserves those. `offspring_in` are the generated texts that the rows brought which such
    a stage read: each becomes a row.
    `history` has the shards that the stage saved for later snapshots, by section: every section that the stage
    declares, without shards where it saved none. `below` has the shards of this stage that layers rest on
    (`stage.Layer`); those of other stages are in their manifests. `parents` are the fingerprints of the input and of
    the history, and `parent_digests` the SHA-256 of their manifests as stored; a partition has one for all of its
    history (`folded`). `resources`, `libraries` and `writer` complete what the fingerprint is computed from;
    `libraries` are the versions of those that decide rows, by name. `metrics` has whole numbers only, so that merging
    is exact in any order.

    `poison` are the identities of those input shards that were quarantined whole (`PARTITION`). A manifest with any is
    partial: it lies beside the whole one, in the same prefix, and its fingerprint is the whole one's, a hyphen, and a
    digest of `poison`.
    """

    stage: str
    version: int
    fingerprint: str
    params: Mapping[str, Any]
    parents: tuple[str, ...]
    covers: tuple[str, ...]
    schema: tuple[tuple[str, str], ...]
    shards: Shards
    history: Mapping[str, Shards]
    rejects: Shards
    quarantine: Shards
    rows_in: int
    bytes_in: int
    rejected: Tally
    quarantined: Tally
    metrics: Mapping[str, Any] = field(default_factory=dict)
    parent_digests: tuple[str, ...] = ()
    resources: Mapping[str, str] = field(default_factory=dict)
    below: Shards = ()
    writer: str = WRITER
    poison: tuple[str, ...] = ()
    libraries: Mapping[str, str] = field(default_factory=dict)
    offspring_in: int = 0
    format: int = FORMAT

    @property
    def rows(self) -> int:
        """Rows kept."""
        return sum(shard.rows for shard in self.shards)

    @property
    def uses(self) -> int:
        """Rows kept, each counted as often as its column `copies` says: once, if the stage wrote none."""
        copies = self.metrics.get("kept", {}).get("copies")
        return int(copies["sum"]) if copies else self.rows

    @property
    def offspring(self) -> int | None:
        """Generated texts that the kept rows bring, None where no row says how many."""
        brought: int | None = self.metrics.get("kept", {}).get(N_GENERATED, {}).get("sum")
        return brought

    @property
    def rows_due(self) -> int:
        """Rows that the stage makes of its input, however it judges them: those that came in, and their offspring."""
        return self.rows_in + self.offspring_in

    def due(self, conserves: Conserved, parent: "Manifest") -> int:
        """Return how many rows, copies or tokens have to come out of what the stage read of its parent."""
        if conserves == "tokens":
            return parent.tokens
        return parent.uses if conserves == "copies" else self.rows_due

    def accounted(self, conserves: Conserved) -> int:
        """Return how many rows, copies or tokens are kept, rejected or quarantined."""
        if conserves == "tokens":
            return self.tokens + self.tokens_of("rejects")
        return self.rows + sum(self.rejected.values()) + sum(self.quarantined.values())

    @property
    def bytes(self) -> int:
        """Bytes of the kept shards as stored."""
        return sum(shard.bytes for shard in self.shards)

    @property
    def tokens(self) -> int:
        """Tokens of the kept rows; 0 before a stage has counted them."""
        return self.tokens_of("kept")

    def tokens_of(self, rows: Literal["kept", "rejects"]) -> int:
        """Return the tokens of the kept rows, or of the rejected ones."""
        return int(self.metrics.get(rows, {}).get("n_tokens", {}).get("sum", 0))

    @property
    def landed(self) -> bool:
        """Return whether the shards are files of a landed snapshot, whose rows are not counted yet."""
        return bool(self.shards) and self.shards[0].is_landed

    @property
    def history_shards(self) -> Shards:
        """Every shard of the saved history, section by section."""
        return tuple(shard for name in sorted(self.history) for shard in self.history[name])

    @property
    def stored(self) -> Shards:
        """Every shard that the manifest names."""
        return (*self.shards, *self.history_shards, *self.rejects, *self.quarantine, *self.below)


def stage_prefix(stage: str, fingerprint: str) -> str:
    """Return the prefix, relative to the root, under which a stage's output lives, the partial one's too."""
    return f"{stage}/{fingerprint.partition('-')[0]}"


def manifest_path(stage: str, fingerprint: str) -> str:
    """Return the path of a stage's manifest: the commit point of the whole stage."""
    lacking = fingerprint.partition("-")[2]
    return f"{stage_prefix(stage, fingerprint)}/manifest.{f'{PARTIAL}{lacking}.' if lacking else ''}json"


def fingerprint_in(path: str) -> str:
    """Return the fingerprint of the manifest that is stored at a path: the reverse of `manifest_path`.

    Of a path behind an abandoned slot (`commit_slots`) it is the same.
    """
    folder, _, name = path.rpartition("/")
    before, is_partial, lacking = name.partition(PARTIAL)
    return folder.rpartition("/")[2] + (f"-{lacking.partition('.')[0]}" if before and is_partial else "")


SHARED = "shared-"
"""What the prefix of a stage's shared shards begins with, after the stage's name."""


def shared_prefix(stage: str, version: int, libraries: Mapping[str, str]) -> str:
    """Return the prefix of the shards that all runs of a stage's version share (`stage.Engine.map`, `stage.Layer`).

    Runs by other versions of its libraries share others.
    """
    identity = [version, FORMAT, rows_by(WRITER), *([dict(libraries)] if libraries else [])]
    return f"{stage}/{SHARED}{digest_of(identity)[:24]}"


def is_shared(path: str) -> bool:
    """Return whether a path, relative to the root, is the prefix of a stage's shared shards or below it."""
    return path.partition("/")[2].startswith(SHARED)


ABANDONED = b'{"abandoned":true}\n'
"""What a vacuum puts in the commit slot of an attempt that it removes, so that the attempt can no longer commit."""


def commit_slots(stage: str, fingerprint: str) -> Iterator[str]:
    """Yield the paths at which a stage may commit: the first that is not abandoned counts."""
    yield manifest_path(stage, fingerprint)
    for generation in itertools.count(1):
        yield f"{stage_prefix(stage, fingerprint)}/manifest.{generation}.json"


def fingerprint_of(
    stage: str,
    version: int,
    params: object,
    parents: Iterable[str],
    resources: Mapping[str, str],
    libraries: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the identity of a stage's output: what and how; never where, when, or by how many workers.

    `resources` maps a parameter's file to its content digest, and `libraries` the name of a library to its version;
    `parents` are fingerprints of the input and of the history, in order.
    """
    identity = {"stage": stage, "version": version, "params": params, "parents": list(parents)}
    return _fingerprint({**identity, "resources": dict(resources)}, libraries)


def _fingerprint(
    identity: Mapping[str, Any], libraries: Mapping[str, str], writer: str = WRITER, format_: int = FORMAT
) -> str:
    named: dict[str, object] = {"libraries": dict(libraries)} if libraries else {}
    if format_ == FORMAT:
        named["parents"] = folded(identity["parents"])
        writer = rows_by(writer)
    return digest_of({**identity, **named, "format": format_, "writer": writer})


def rows_by(writer: str) -> str:
    """Return what of a writer decides rows: the feature release of pyarrow, whose functions stages compute with.

    A patch release mends faults, and a codec gives back what it was given: shards of others are other files of the same
    rows.
    """
    return writer.partition(".")[0]


def folded(parents: Sequence[str], length: int = 24) -> tuple[str, ...]:
    """Return the input and one digest of all that follows, the history: what a partition has of it does not grow."""
    return (parents[0], digest_of(list(parents[1:]), length)) if len(parents) > INPUT_AND_ONE else tuple(parents)


INPUT_AND_ONE = 2
"""Parents up to which they are as they are: folding is idempotent, and a partition has the fingerprint of its stage."""


def identified(manifest: Manifest) -> Manifest:
    """Return the manifest with the fingerprint that follows from what it says.

    The identity of a landed snapshot has the names and digests of its files besides its params, and where pieces begin.
    """
    files = {"files": [_file_of(shard) for shard in manifest.shards]} if manifest.landed else {}
    identity = {
        "stage": manifest.stage,
        "version": manifest.version,
        "params": {**manifest.params, **files},
        "parents": list(manifest.parents),
        "resources": dict(manifest.resources),
    }
    whole = _fingerprint(identity, manifest.libraries, manifest.writer, manifest.format)
    lacking = f"-{digest_of(sorted(manifest.poison), 12)}" if manifest.poison else ""
    return replace(manifest, fingerprint=whole + lacking)


def _file_of(shard: Shard) -> list[object]:
    return [shard.path, shard.digest, *([shard.start] if shard.start != WHOLE else [])]


def dump(manifest: Manifest) -> bytes:
    """Return the manifest as it is stored: canonical and sealed, byte-identical between attempts."""
    named = {part.name: getattr(manifest, part.name) for part in fields(manifest)}
    for name in ("poison", "libraries", "offspring_in"):
        if not named[name]:
            del named[name]
    return seal(named)


def reference_of(path: str, manifest: Manifest) -> str:
    """Return the reference of a committed manifest: its path and the digest of its bytes."""
    return reference(path, sha256(dump(manifest)))


def load(body: bytes, path: str = "manifest") -> Manifest:
    """Read a stored manifest; `path` names it in the error when it is not one, or was changed."""
    way_out = _way_out(path)
    raw = parse(body, path, way_out, _shard_or)
    _require_format(raw.get("format", 1), path)
    require_seal(raw, body, path, way_out)
    try:
        manifest = _manifest(raw)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        message = f"{path} is not a manifest ({cause(error)}); {way_out}"
        raise ContractError(message) from error
    fingerprint = identified(manifest).fingerprint
    if manifest.fingerprint != fingerprint:
        message = f"{path}: its fingerprint is {manifest.fingerprint}, and what it says gives {fingerprint}; {way_out}"
        raise ContractError(message)
    return manifest


def _way_out(path: str) -> str:
    if "/partitions/" in path:
        return "remove it and run again: only its missing shards are written again"
    if "compacted/" in path:
        return "remove its folder: its parts are still there and are read instead"
    return "restore it from a backup or remove its folder and run again"


def _require_format(written: object, path: str) -> None:
    if written not in READ:
        message = (
            f"{path} is not a manifest of format {' or '.join(map(str, READ))} but of format {written}; run again into "
            "a new root, or read this one with the version of Refinery that wrote it"
        )
        raise ContractError(message)


def _manifest(raw: dict[str, Any]) -> Manifest:
    for name in ("stage", "fingerprint"):
        _require(raw[name], isinstance(raw[name], str), name)
    raw["offspring_in"] = raw.get("offspring_in", 0)
    for name in ("version", "rows_in", "bytes_in", "offspring_in"):
        _require(raw[name], _is_count(raw[name]), name)
    for name in ("rejected", "quarantined"):
        _require(raw[name], all(map(_is_count, raw[name].values())), name)
    raw["libraries"] = raw.get("libraries", {})
    for name in ("params", "metrics", "resources", "libraries"):
        _require(raw[name], isinstance(raw[name], dict), name)
    for name in ("parents", "parent_digests", "covers"):
        raw[name] = tuple(raw[name])
    raw["poison"] = tuple(raw.get("poison", ()))
    _require(raw["parent_digests"], len(raw["parent_digests"]) == len(raw["parents"]), "parent_digests")
    raw["schema"] = tuple((name, kind) for name, kind in raw["schema"])
    for name in ("shards", "rejects", "quarantine", "below"):
        raw[name] = tuple(map(shard_of, raw[name]))
    raw["history"] = {name: tuple(map(shard_of, shards)) for name, shards in raw["history"].items()}
    return Manifest(**raw)


def _shard_or(raw: dict[str, Any]) -> Shard | dict[str, Any]:
    """Return the shard that has the fields of an object, not checked yet: 100,000 of them are no mappings first."""
    return Shard(**raw) if _ALWAYS <= raw.keys() <= _SOMETIMES else raw


_SOMETIMES = frozenset(declared.name for declared in fields(Shard))
_ALWAYS = frozenset(declared.name for declared in fields(Shard) if OMITTED not in declared.metadata)


def shard_of(raw: Mapping[str, Any] | Shard) -> Shard:
    """Return the shard that stored JSON describes; ValueError for a path that leaves its root or a size below 0."""
    shard = raw if isinstance(raw, Shard) else Shard(**raw)
    parts = shard.path.split("/")
    inside = shard.path.isprintable() and parts[0] not in ("", "file:", "s3:") and ".." not in parts
    _require(shard.path, inside, "a shard's path")
    _require(shard.digest, bool(re.fullmatch("[0-9a-f]{64}", shard.digest)), "a shard's digest")
    named = shard.is_landed or parts[-1].partition(".")[0] == shard.digest[:NAMED]
    _require(shard.path, named, f"the path of the shard with the digest {shard.digest}")
    _require(shard.index_digest, bool(re.fullmatch("([0-9a-f]{64})?", shard.index_digest)), "a shard's index digest")
    sizes = (shard.rows, shard.bytes, shard.below)
    _require(sizes, all(map(_is_count, sizes)), "a shard's rows and bytes")
    piece = shard.start == WHOLE or (_is_count(shard.start) and shard.is_landed)
    _require(shard.start, piece, "where a shard starts")
    _require(shard.fields, isinstance(shard.fields, str) and (shard.is_landed or not shard.fields), "a shard's fields")
    _require(shard.library, bool(re.fullmatch(r"(\S+==\S+)?", shard.library)), "a shard's library")
    return shard


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _require(value: object, valid: bool, name: str) -> None:
    if not valid:
        message = f"{name} cannot be {str(value)[:100]!r}"
        raise ValueError(message)


def schema_pairs(schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    """Return a schema as (name, type) pairs, as manifests hold it."""
    return tuple((column.name, str(column.type)) for column in schema)


def total(tallies: Iterable[Tally]) -> dict[str, int]:
    """Return the sum of tallies, name by name."""
    added: Counter[str] = Counter()
    for tally in tallies:
        added.update(tally)
    return dict(sorted(added.items()))


def in_order(manifests: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """Return manifests by stage, each after the one that it was made of, whatever the order of stages is.

    Those that are made of none of the others, or of the same one, are in the order in which they are given.
    """
    stages = {manifest.fingerprint: stage for stage, manifest in manifests.items()}
    following: dict[str, list[str]] = {}
    for stage in reversed([*manifests]):
        parent = stages.get(next(iter(manifests[stage].parents), ""), "")
        following.setdefault(parent, []).append(stage)
    ordered: dict[str, Manifest] = {}
    waiting = following.get("", [])
    while waiting:
        stage = waiting.pop()
        ordered[stage] = manifests[stage]
        waiting += following.get(stage, [])
    return ordered
