"""Checks a version's entry against its manifests, and its published files against what they were written from."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.cards import choosing_stages, one_that, tokenizes
from pipeline_tasks.engines.each import Work
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.verify.findings import Findings, Problem, found, is_sound
from pipeline_tasks.inspect.verify.manifests import Committed
from pipeline_tasks.inspect.verify.objects import Expected
from pipeline_tasks.manifest import Manifest, in_order
from pipeline_tasks.publish.datasets.building import Entry, entry_of, file_of, files_of, index_of, packed_shards
from pipeline_tasks.publish.datasets.origin import INDEX, ORIGIN, origin_bytes, origin_of
from pipeline_tasks.publish.datasets.published_shards import named_files, open_lineage
from pipeline_tasks.publish.exports.shards import PackedShard, is_named
from pipeline_tasks.publish.exports.tokenizer import Tokenizer, tokenizer_of
from pipeline_tasks.publish.logs.version_log import Version, version_path
from pipeline_tasks.publish.published import PublishedFile, read_published_file
from pipeline_tasks.publish.superseded import SUPERSEDED, near_manifests
from pipeline_tasks.publish.version_facts import is_partial, prefix_of, saved_history, sizes_of
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.sealed import sha256
from pipeline_tasks.stage import Shard
from pipeline_tasks.stages.tokenize.params import FILES
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import erased_by_path

TOKENIZERS = tuple(f"tokenizer{suffix}" for suffix in FILES)
"""Names that the tokenizer of a version may have; most have the first."""

Pairs = Sequence[tuple[Version, Mapping[str, Committed]]]
"""Versions, each with its readable manifests by stage."""

BUILT = (INDEX, ORIGIN, "README.md")
"""Files of every version of a training dataset, besides those of its shards and its tokenizer."""


def published_files(root: str, version: Version) -> Iterator[Expected]:
    """Yield the files of a version."""
    for file in _files(root, version):
        yield Expected(
            f"{root}/{file.path}", "published files", (file.bytes,), (file.digest,), version.way_out, root=root
        )


def _files(root: str, version: Version) -> Sequence[PublishedFile]:
    """Return the files of a version; without those of its shards if its index is damaged, a problem of its own."""
    try:
        return named_files(root, version)
    except ContractError:
        return version.files


def tokenizer_file(version: Version) -> str:
    """Return the name of the version's tokenizer."""
    named = {file.path for file in version.files}
    return next((name for name in TOKENIZERS if f"{version.prefix}/{name}" in named), TOKENIZERS[0])


def check_entry(root: str, version: Version, committed: Mapping[str, Committed], findings: Findings) -> None:
    """Compare a version's numbers and names with those of its manifests, as publishing computes them."""
    where = f"{root}/{version_path(version.recipe, version.number)}"
    heal = f"restore the log from a backup, or {version.rerun}: a right version is appended"
    by_stage = {stage: read.manifest for stage, read in committed.items()}
    if len(by_stage) < len(version.manifests):
        return  # a manifest is damaged, which is a problem of its own
    with findings.guarded(where, heal):
        expected = {**sizes_of(by_stage), "prefix": prefix_of(version.recipe, by_stage)}
        shards = [shard for near in near_manifests(by_stage) for shard in near.history.get("superseded", ())]
        expected["superseded"] = sum(shard.rows for shard in shards)
        if version.saved is not None:  # an entry of an earlier release says nothing of it
            expected |= {"saved": saved_history(by_stage), "partial": is_partial(by_stage)}
        for name, value in expected.items():
            if getattr(version, name) != value:
                findings.add(Problem(where, f"{name} is wrong", str(value), str(getattr(version, name)), heal))
        names = (*BUILT, tokenizer_file(version)) if COMPOSE in by_stage else ()
        wanted = {f"{version.prefix}/{name}" for name in names}
        wanted |= {f"{version.prefix}/superseded.parquet"} if expected["superseded"] else set()
        missing = sorted(wanted - {file.path for file in version.files})
        if missing or not (version.report or COMPOSE in by_stage):
            absent = ", ".join(missing) or "a report"
            findings.add(Problem(where, "does not name all published files", absent, "", heal))


def check_published(work: Work, pairs: Pairs, findings: Findings, *, full: bool) -> None:
    """Compare the published files with the shards that they were written from; with `full`, export these again."""
    builds = [build for pair in pairs if (build := _check_version(work.place, *pair, findings)) is not None]
    ran = work.each(
        "tokens",
        partial(_entry, work.place),
        [packed for build in builds for packed in build.packed()] if full else [],
        key=lambda packed: [packed.shard.identity, [file.path for file in files_of(packed.named)]],
        weight=lambda packed: packed.shard.packed.bytes,
        keeps=is_sound,
    )
    for build in builds:
        again = list(islice(ran, len(build.shards))) if full else []
        for facts in again:
            findings.take(facts)
        if all(facts["entry"] for facts in again):
            entries = [facts["entry"] for facts in again] if full else build.dataset["shards"]
            with findings.guarded(f"{work.place}/{build.version.prefix}", build.version.way_out):
                _check_build(work.place, build, entries, findings)


def _check_version(
    root: str, version: Version, committed: Mapping[str, Committed], findings: Findings
) -> "Build | None":
    """Check the table of superseded documents; return what is compared of a build, None where something is damaged."""
    by_stage = {stage: read.manifest for stage, read in committed.items()}
    if len(by_stage) < len(version.manifests) or _any_damaged(root, version, by_stage, findings):
        return None
    if version.superseded_path:
        with findings.guarded(f"{root}/{version.superseded_path}", version.way_out):
            expected = (version.superseded, SUPERSEDED)
            _check_table(root, version.superseded_path, expected, findings, version.way_out)
    if COMPOSE in by_stage:
        with findings.guarded(f"{root}/{version.prefix}", version.way_out):
            tokenizer = _tokenizer(root, by_stage, findings)
            build = _build(root, version, by_stage, tokenizer) if tokenizer else None
            return build if build and not _damaged(root, files_of(build.dataset["shards"]), findings) else None
    return None


class Build(NamedTuple):
    """A training dataset: its index, what that says of its packed shards, and these shards."""

    version: Version
    by_stage: Mapping[str, Manifest]
    tokenizer: Tokenizer
    body: bytes
    dataset: Mapping[str, Any]
    shards: Sequence[PackedShard]

    def packed(self) -> Iterator["Packed"]:
        """Yield the packed shards, each with its entry in a list, which is empty if the index lacks it."""
        for at, shard in enumerate(self.shards):
            yield Packed(shard, self.dataset["shards"][at : at + 1], self.version.prefix, self.version.way_out)


class Packed(NamedTuple):
    """A packed shard, what the index says of it, and the folder of its version with the way to heal that."""

    shard: PackedShard
    named: Sequence[Entry]
    prefix: str
    heal: str


def _build(root: str, version: Version, by_stage: Mapping[str, Manifest], tokenizer: Tokenizer) -> Build:
    body = read_published_file(root, version.file(INDEX), version.way_out)
    return Build(version, by_stage, tokenizer, body, json.loads(body), packed_shards(root, by_stage, tokenizer))


def _check_build(root: str, build: Build, entries: Sequence[Entry], findings: Findings) -> None:
    """Compare the index of a training dataset with the entries of its packed shards."""
    version, by_stage, tokenizer, body, index, _ = build
    expected = index_of(version.recipe, by_stage, tokenizer, entries)
    for name, value in expected.items():
        if index.get(name) != value:
            path = f"{root}/{version.prefix}/dataset.json"
            problem = f"is not what its packed shards give: {name}"
            findings.add(Problem(path, problem, str(value)[:200], str(index.get(name))[:200], version.way_out))
    origin = sha256(origin_bytes(origin_of(version.recipe, by_stage, body)))
    _compare(root, version, {tokenizer.file_name: tokenizer.digest, ORIGIN: origin}, findings)


def _entry(root: str, packed: Packed) -> dict[str, Any]:
    """Return the entry of a packed shard as it is exported again; that of an erased one is taken as it is named."""
    entry: dict[str, Any] = {}

    def check(findings: Findings) -> None:
        gone = erased_by_path(root)
        with (
            findings.guarded(f"{root}/{packed.prefix}", packed.heal),
            tempfile.TemporaryDirectory(prefix="refinery-verify-") as folder,
        ):
            is_erased = gone and any(file.path in gone for file in files_of(packed.named))
            entry.update(packed.named[0] if is_erased else entry_of(_as_published(root, packed), Path(folder)))

    return {**found(check), "entry": entry}


def _as_published(root: str, packed: Packed) -> PackedShard:
    """Return a packed shard that is exported as the index says: a lineage of an earlier release has no filter."""
    for entry in packed.named:
        with open_lineage(root, file_of(entry["lineage"]), packed.heal) as lineage:
            return replace(packed.shard, named=is_named(lineage))
    return packed.shard


def _tokenizer(root: str, by_stage: Mapping[str, Manifest], findings: Findings) -> Tokenizer | None:
    """Return the tokenizer of a build; None where the shard that has it is damaged, which is named."""
    tokenized = one_that(tokenizes, by_stage)
    if any(findings.is_damaged(f"{root}/{shard.path}") for shard in tokenized.history_shards):
        return None
    return tokenizer_of(root, tokenized)


def _any_damaged(root: str, version: Version, by_stage: Mapping[str, Manifest], findings: Findings) -> bool:
    """Return whether a file that a version's entry names, or a shard that it was written from, has a problem."""
    ordered = [*in_order(by_stage)]
    stages = [*filter(tokenizes, ordered), *ordered[len(choosing_stages(ordered)) :]]
    return _damaged(root, [*version.files, *(shard for stage in stages for shard in by_stage[stage].stored)], findings)


def _damaged(root: str, objects: Iterable[PublishedFile | Shard], findings: Findings) -> bool:
    return any(findings.is_damaged(f"{root}/{each.path}") for each in objects)


def _compare(root: str, version: Version, digests: Mapping[str, str], findings: Findings) -> None:
    """Compare the digests that the version promises with those of the files as they are computed again."""
    for name, digest in digests.items():
        promised = version.file(name)
        if promised.digest != digest:
            problem = "is not what its packed sequences give"
            values = (f"SHA-256 {digest}", f"SHA-256 {promised.digest}")
            findings.add(Problem(f"{root}/{promised.path}", problem, *values, version.way_out))


def _check_table(root: str, path: str, expected: tuple[int | None, pa.Schema], findings: Findings, heal: str) -> None:
    """Check the rows (None: any) and the columns of a published table."""
    rows, schema = expected
    with storage.connect(root).open(path) as stream:
        file = pq.ParquetFile(stream)
        if rows not in (None, file.metadata.num_rows):
            values = (f"{rows} rows", f"{file.metadata.num_rows} rows")
            findings.add(Problem(f"{root}/{path}", "has another number of rows", *values, heal))
        if file.schema_arrow.names != schema.names:
            names = (", ".join(schema.names), ", ".join(file.schema_arrow.names))
            findings.add(Problem(f"{root}/{path}", "has other columns", *names, heal))
