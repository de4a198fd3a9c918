"""Publishes a training dataset: exports each packed shard, and appends a version that names their files."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_tasks.cards import has_sequences, one_that, plans_mixture, stage_that, tokenizes
from pipeline_tasks.errors import ContractError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.datasets.card import card_text
from pipeline_tasks.publish.datasets.origin import INDEX, ORIGIN, origin_bytes, origin_of
from pipeline_tasks.publish.exports import shards as exported
from pipeline_tasks.publish.exports.shards import PackedShard, reached
from pipeline_tasks.publish.exports.tokenizer import Tokenizer, tokenizer_of
from pipeline_tasks.publish.exports.tokens import dtype_for
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.published import PublishedFile, publish_file, read_published_file
from pipeline_tasks.publish.takedowns import documents_of
from pipeline_tasks.publish.version_facts import prefix_of
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.sealed import SEAL, canonical, sha256
from pipeline_tasks.store import storage
from pipeline_tasks.store.committing import sizes_of
from pipeline_tasks.store.erasures import erased
from pipeline_tasks.store.reading import read_history, read_manifest

SHARDS = "publish/shards"
"""Where the files of packed shards are, named by their content: versions with the same shard share them."""

CARD = "README.md"
NAMED = 32
"""Digits of its digest that a file is named by."""

Entry = dict[str, Any]
"""A packed shard in `dataset.json`: its sequences, tokens, and the path, bytes and SHA-256 of each file."""


def restore_build(
    root: str, version: Version, export: Callable[[Sequence[PackedShard]], Iterable[Entry]]
) -> list[PublishedFile]:
    """Write the files of a published version again that are damaged or gone; return all, of which each byte was read.

    ContractError, or DeterminismViolation, if its manifests give other files than it was published with.
    """
    by_stage = {stage: read_manifest(root, referred) for stage, referred in version.manifests.items()}
    tokenizer = tokenizer_of(root, one_that(tokenizes, by_stage))
    promised = version.file(INDEX).digest
    for named in (True, False):  # lineages of earlier releases have no filter
        exports = partial(export_as, export, named=named)
        entries = exported_shards(root, version.recipe, by_stage, tokenizer, exports, _are_whole)
        index = index_of(version.recipe, by_stage, tokenizer, entries)
        if promised in index_digests(index):
            break
    small = publish_small_files(root, version.recipe, by_stage, tokenizer, index)
    own = {file for file in version.files if not file.path.startswith(f"{SHARDS}/")}  # the index says which shards
    other = sorted({file.path for file in set(small) ^ own})
    if other:
        message = (
            f"{root}: version {version.number} of {version.recipe} was published with other bytes than its manifests "
            f"give now: {', '.join(other[:3])}. Install the release that built it, or build a new version"
        )
        raise ContractError(message)
    return [*files_of(entries), *small]


def export_as(
    export: Callable[[Sequence[PackedShard]], Iterable[Entry]], shards: Sequence[PackedShard], *, named: bool
) -> Iterable[Entry]:
    """Export packed shards, with a filter in the lineage of each or without."""
    return export([replace(shard, named=named) for shard in shards])


def publish_small_files(
    root: str, name: str, by_stage: Mapping[str, Manifest], tokenizer: Tokenizer, index: Mapping[str, Any]
) -> list[PublishedFile]:
    """Store the files beside the shards: index, tokenizer, origin and card."""
    prefix = prefix_of(name, by_stage)
    body = _stored_index(root, name, f"{prefix}/{INDEX}", index)
    small = {
        INDEX: body,
        tokenizer.file_name: tokenizer.definition,
        ORIGIN: origin_bytes(origin_of(name, by_stage, body)),
        CARD: card_text(index, by_stage[COMPOSE], plan_of(root, by_stage)).encode(),
    }
    return [_published(root, f"{prefix}/{file}", body, name) for file, body in small.items()]


def _stored_index(root: str, name: str, path: str, index: Mapping[str, Any]) -> bytes:
    """Return `dataset.json` with its seal, or without one if an earlier release published it there without."""
    promised = version_log.promised_files(root, name, path.rpartition("/")[0]).get(path)
    unsealed = unsealed_bytes(index)
    return unsealed if promised and promised.digest == sha256(unsealed) else index_bytes(index)


def plan_of(root: str, by_stage: Mapping[str, Manifest]) -> list[dict[str, Any]]:
    """Return the plan of a build's mixture: a row per group; none if the recipe plans none."""
    return _planned(root, by_stage, "plan")


def bands_of(root: str, by_stage: Mapping[str, Manifest]) -> list[dict[str, Any]]:
    """Return the plan of a build's mixture by bands of quality: a row per group and band; none without `quality`."""
    return _planned(root, by_stage, "bands")


def _planned(root: str, by_stage: Mapping[str, Manifest], section: str) -> list[dict[str, Any]]:
    mixed = by_stage.get(stage_that(plans_mixture, by_stage))
    if mixed is None or not mixed.history.get(section):
        return []
    rows: list[dict[str, Any]] = pa.Table.from_batches(list(read_history(root, mixed, section))).to_pylist()
    return rows


def index_of(
    name: str, by_stage: Mapping[str, Manifest], tokenizer: Tokenizer, entries: Sequence[Entry]
) -> dict[str, Any]:
    """Return `dataset.json`: what a loader has to know, and the files of every shard relative to its folder."""
    packed = one_that(has_sequences, by_stage)
    params, dropped = packed.params, packed.tokens_of("rejects")
    sequences, tokens = (sum(entry[key] for entry in entries) for key in ("sequences", "tokens"))
    length = int(params["length"])
    return {
        "format": 1,
        "name": name,
        "length": length,
        "dtype": dtype_for(tokenizer.vocab_size),
        "byte_order": "little",
        "pad_id": int(params["pad_id"]),
        "tokenizer": tokenizer.digest,
        "sequences": sequences,
        "tokens": tokens,
        "pads": sequences * length - tokens,
        **({"dropped": dropped} if dropped else {}),
        "shards": list(entries),
    }


def index_bytes(index: Mapping[str, Any]) -> bytes:
    """Return `dataset.json` as it is stored: in lines, with the digest of the canonical form of its other fields."""
    return unsealed_bytes({**index, SEAL: sha256(canonical(index))})


def unsealed_bytes(index: Mapping[str, Any]) -> bytes:
    """Return `dataset.json` as releases before its seal stored it."""
    return json.dumps(index, sort_keys=True, indent=1).encode() + b"\n"


def index_digests(index: Mapping[str, Any]) -> set[str]:
    """Return the digests that a stored index may have: with its seal, and without, by release."""
    return {sha256(index_bytes(index)), sha256(unsealed_bytes(index))}


def packed_shards(root: str, by_stage: Mapping[str, Manifest], tokenizer: Tokenizer) -> list[PackedShard]:
    """Return the packed shards of a build that have sequences, in order, each with the documents of it."""
    pack, documents = one_that(has_sequences, by_stage), documents_of(by_stage)
    how: dict[str, Any] = {
        "numbered": "copy" in dict(documents.schema),
        "with_tokens": "tokens" in dict(pack.schema),
        "carried": (pack.params["method"], pack.params.get("tail", "carry")) == ("concat", "carry"),
        "length": int(pack.params["length"]),
        "pad_id": int(pack.params["pad_id"]),
        "dtype": dtype_for(tokenizer.vocab_size),
    }
    may_have = partial(reached, documents.shards, length=how["length"], carried=how["carried"])
    return [PackedShard(root, shard, may_have(at), **how) for at, shard in enumerate(pack.shards) if shard.rows]


Look = Callable[[str, Sequence[PublishedFile]], Iterable[bool]]
"""Says of each of some published files of a root whether it is there."""


def _have_sizes(root: str, files: Sequence[PublishedFile]) -> Iterator[bool]:
    """Yield whether each file is there with its size, or was erased.

    No byte of a shard is read to publish it once more, and files are listed, a thousand by a request.
    """
    sizes = sizes_of(storage.connect(root), [file.path for file in files], SHARDS)
    for file in files:
        size = sizes.get(file.path)
        yield size == file.bytes or (size is None and erased(root, file.path, file.digest) is not None)


def _are_whole(root: str, files: Sequence[PublishedFile]) -> Iterator[bool]:
    """Yield whether each file is there with its bytes, which are read."""
    return storage.each(storage.connect(root), partial(is_whole, root), files)


def exported_shards(
    root: str,
    name: str,
    by_stage: Mapping[str, Manifest],
    tokenizer: Tokenizer,
    export: Callable[[Sequence[PackedShard]], Iterable[Entry]],
    look: Look = _have_sizes,
) -> list[Entry]:
    """Return the entry of each packed shard that has sequences; `export` those that no version has."""
    shards = packed_shards(root, by_stage, tokenizer)
    wanted = {shard.identity: shard for shard in shards}
    known = _known_entries(root, name, tokenizer, wanted.keys(), look)
    missing = [shard for identity, shard in wanted.items() if identity not in known]
    known |= dict(zip((shard.identity for shard in missing), export(missing), strict=True))
    return [known[shard.identity] for shard in shards]


def files_of(entries: Sequence[Entry]) -> list[PublishedFile]:
    """Return the files of the shards of an index."""
    return [file_of(entry[kind]) for entry in entries for kind in _KINDS.values()]


_KINDS = {"bin": "bin", "ends": "ends", "lineage.parquet": "lineage"}
"""The key in an entry of each file of a shard, by its ending."""


def _known_entries(
    root: str,
    name: str,
    tokenizer: Tokenizer,
    wanted: AbstractSet[str],
    look: Look,
) -> dict[str, Entry]:
    """Return the entries of earlier versions of `wanted` packed shards, by their identities, whose files are all there.

    Files are looked for once, and those of the newest version first: it has most of what goes on.
    """
    known: dict[str, Entry] = {}
    for version in reversed(version_log.versions(root, name)):
        if version.tokenizer != tokenizer.digest or wanted <= known.keys():
            continue
        try:
            index = json.loads(read_published_file(root, version.file(INDEX)))
        except ContractError:  # damaged or gone: its shards are exported again, and `verify` names it
            continue
        missing = wanted - known.keys()
        entries = [entry for entry in index["shards"] if entry["packed"] in missing]
        are_there = iter(look(root, files_of(entries)))
        for entry, *are in zip(entries, *[are_there] * len(_KINDS), strict=True):
            if all(are):
                known[entry["packed"]] = entry
    return known


def file_of(entry: Mapping[str, Any]) -> PublishedFile:
    """Return a file of a shard as an index names it."""
    return PublishedFile(f"{SHARDS}/{entry['path'].rpartition('/')[2]}", entry["bytes"], entry["sha256"])


def export_shard(shard: PackedShard) -> Entry:
    """Write and store the files of a packed shard; return its entry."""
    with tempfile.TemporaryDirectory(prefix="refinery-export-") as place:
        folder = Path(place)
        entry = entry_of(shard, folder)
        for ending, kind in _KINDS.items():
            file = file_of(entry[kind])
            publish_file(shard.root, file.path, folder / f"shard.{ending}", {file.path: file})
    return entry


def entry_of(shard: PackedShard, folder: Path) -> Entry:
    """Write the files of a packed shard into a local folder; return its entry."""
    counts = exported.write(shard, folder)
    files = {
        _KINDS[ending]: {"path": f"../shards/{digest[:NAMED]}.{ending}", "bytes": size, "sha256": digest}
        for ending, size, digest in exported.digests(folder)
    }
    return {"packed": shard.identity, **counts, **files}


def _published(root: str, path: str, body: bytes, name: str) -> PublishedFile:
    with tempfile.NamedTemporaryFile(prefix="refinery-") as local:
        local.write(body)
        local.flush()
        promised = version_log.promised_files(root, name, path.rpartition("/")[0])
        if path.endswith(f"/{CARD}") and path in promised and is_whole(root, promised[path]):
            return promised[path]  # prose, which another release may have written otherwise
        return publish_file(root, path, Path(local.name), promised)


def is_whole(root: str, file: PublishedFile) -> bool:
    """Return whether a published file is there with its bytes."""
    store = storage.connect(root)
    return store.size(file.path) == file.bytes and sha256(store.read(file.path)) == file.digest
