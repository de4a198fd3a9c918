"""Checks the manifests of a version: the links between them, what they cover, and where every row went."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline_tasks.cards import is_stage, stage_card
from pipeline_tasks.inspect.verify.findings import Account, Findings, Problem
from pipeline_tasks.manifest import Manifest, fingerprint_in, in_order
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE, LAND
from pipeline_tasks.run.runner import check_conservation
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import read_committed


@dataclass(frozen=True, slots=True)
class Committed:
    """A manifest that was read, with its URI, its path and the digest of its bytes."""

    where: str
    path: str
    manifest: Manifest
    digest: str


@dataclass(slots=True)
class Manifests:
    """The manifests of all versions of a root, each read once, by reference.

    `complete` is whether the versions that name them were all read: no entry of a log is damaged. `by_fingerprint` has
    those that could be read, and `damaged` the fingerprints of the others.
    """

    root: str
    findings: Findings
    complete: bool = True
    by_reference: dict[str, Committed | None] = field(default_factory=dict)
    by_fingerprint: dict[str, Committed] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)

    def of(self, version: Version) -> dict[str, Committed]:
        """Return the readable manifests of a version by stage, in order; the others are problems."""
        known = [stage for stage in version.manifests if stage in (LAND, COMPOSE) or is_stage(stage)]
        read = {stage: self.read(version.manifests[stage], version) for stage in known}
        readable = {stage: committed for stage, committed in read.items() if committed is not None}
        return {stage: readable[stage] for stage in in_order({name: of.manifest for name, of in readable.items()})}

    def read(self, referred: str, version: Version) -> Committed | None:
        """Return a manifest of a version, None if it cannot be read: that is a problem."""
        if referred not in self.by_reference:
            self.by_reference[referred] = read = self._read(path_of(referred), referred, version)
            if read is None:
                self.damaged.add(fingerprint_in(path_of(referred)))
            else:
                self.by_fingerprint[read.manifest.fingerprint] = read
        return self.by_reference[referred]

    def _read(self, path: str, referred: str, version: Version) -> Committed | None:
        where = f"{self.root}/{path}"
        with self.findings.guarded(where, heal_manifest(path, version)):
            manifest, digest = read_committed(self.root, referred)
            self.findings.count("manifests")
            return Committed(where, path, manifest, digest)
        return None

    def check(self, read: Committed, made_of: Mapping[str, str], how: str) -> None:
        """Check that the manifests that another was made of, `how`, are as they were, and named by a version.

        `made_of` are digests by fingerprint. A manifest that is damaged is a problem of its own, and so is a damaged
        entry of a log, which may name those that no other names.
        """
        for fingerprint, digest in made_of.items():
            known, subject = self.by_fingerprint.get(fingerprint), f"was made with {how}{fingerprint}"
            if known is not None and known.digest != digest:
                problem, heal = f"{subject}, which is not there as it was", "restore that manifest from a backup"
                self.findings.add(Problem(read.where, problem, digest, known.digest, heal))
            if known is None and fingerprint not in self.damaged and self.complete:
                problem = f"{subject}, which no version names: the log of its recipe was removed or cut"
                self.findings.add(Problem(read.where, problem, heal="restore that log from a backup"))


def heal_manifest(path: str, version: Version) -> str:
    """Return how to get a manifest back: a run writes the same bytes from what is stored."""
    made = {COMPOSE: "composed anew", LAND: "listed from the same landed files"}
    how = made.get(path.partition("/")[0], "made again from its receipts")
    return f"restore it from a backup, or remove it and {version.again}: it is {how}"


def check_version(
    version: Version, committed: Mapping[str, Committed], findings: Findings, manifests: Manifests
) -> Account:
    """Check the manifests of a version one after the other; those of all versions are what they were made of."""
    account = Account(version.recipe, version.number, version.snapshot)
    for stage, before in _order(version, committed).items():
        read, parent = committed.get(stage), committed.get(before)
        if read is None:
            continue  # it is damaged, which is a problem of its own
        _check_alone(stage, read, findings)
        if stage == COMPOSE:
            _check_composed(read, findings, manifests)
        else:
            _check_history(read, manifests)
        if parent is not None:
            _check_parent(parent, read, findings)
            _check_rows(parent.manifest, read, findings)
            _count_rows(parent.manifest, read.manifest, account)
    if len(committed) == len(version.manifests) and not account.balanced:
        findings.add(_unbalanced(version, account))
    return account


def _order(version: Version, committed: Mapping[str, Committed]) -> dict[str, str]:
    """Return the stages of a version in order, each with the one before it, "" for the first.

    An entry of an earlier release does not say its order: the manifests do, as far as none is lost.
    """
    stages = [*(version.stages or committed)]
    if version.stages or len(committed) == len(version.manifests):
        return dict(zip(stages, ["", *stages], strict=False))
    made = {read.manifest.fingerprint: stage for stage, read in committed.items()}
    return {stage: made.get(next(iter(read.manifest.parents), ""), "") for stage, read in committed.items()}


def _unbalanced(version: Version, account: Account) -> Problem:
    problem = f"records of snapshot {version.snapshot} are unaccounted for"
    out = f"{account.published:,} published and {sum(account.rejected.values()):,} rejected or quarantined"
    return Problem(
        f"version {version.number} of {version.recipe}",
        problem,
        f"{account.due:,} records in",
        out,
    )


def _check_alone(stage: str, read: Committed, findings: Findings) -> None:
    """Check that a manifest is the one of its stage, and that its tallies are the rows that it stored."""
    manifest = read.manifest
    if manifest.stage != stage:
        findings.add(Problem(read.where, "is the manifest of another stage", stage, manifest.stage))
    for name, tally, shards in (
        ("rejected", manifest.rejected, manifest.rejects),
        ("quarantined", manifest.quarantined, manifest.quarantine),
    ):
        counted, stored = sum(tally.values()), sum(shard.rows for shard in shards)
        if counted != stored:
            problem = f"counts other {name} rows than it stored"
            findings.add(Problem(read.where, problem, f"{counted} rows", f"{stored} rows", REFINE_AGAIN))


def _check_composed(read: Committed, findings: Findings, manifests: Manifests) -> None:
    """Check that the manifests of the selected versions are there as they were composed."""
    known = manifests.by_fingerprint
    made_of = dict(zip(read.manifest.parents, read.manifest.parent_digests, strict=True))
    manifests.check(read, made_of, "the manifest ")
    inputs = [known[fingerprint].manifest for fingerprint in read.manifest.parents if fingerprint in known]
    shards = tuple(shard for manifest in inputs for shard in manifest.shards)
    if len(inputs) == len(read.manifest.parents) and read.manifest.shards != shards:
        problem = "does not have the shards of the manifests that it was composed of, once each"
        counts = (f"{len(shards)} shards", f"{len(read.manifest.shards)} shards")
        findings.add(Problem(read.where, problem, *counts, REFINE_AGAIN))


REFINE_AGAIN = "its rows cannot be trusted: restore its folder from a backup, or remove the folder and run again"


def _check_parent(parent: Committed, read: Committed, findings: Findings) -> None:
    """Check that a stage was made from its parent, byte for byte."""
    manifest = read.manifest
    if manifest.parents[:1] != (parent.manifest.fingerprint,):
        expected, actual = parent.manifest.fingerprint, ", ".join(manifest.parents[:1])
        findings.add(Problem(read.where, "was not made from its parent", expected, actual, REFINE_AGAIN))
    elif manifest.parent_digests[0] != parent.digest:
        digests = (manifest.parent_digests[0], parent.digest)
        findings.add(Problem(read.where, "was made from another form of its parent", *digests, REFINE_AGAIN))


def _check_history(read: Committed, manifests: Manifests) -> None:
    """Check that the history that a stage was made with is still there."""
    manifest = read.manifest
    made_of = dict(zip(manifest.parents[1:], manifest.parent_digests[1:], strict=True))
    manifests.check(read, made_of, f"the history of {manifest.stage}/")


def _check_rows(parent: Manifest, read: Committed, findings: Findings) -> None:
    """Check that a stage covers its parent's shards once, and that its rows add up."""
    manifest = read.manifest
    if manifest.covers != tuple(shard.identity for shard in parent.shards):
        problem = f"does not cover the shards of {parent.stage} once each"
        counts = (f"{len(parent.shards)} shards", f"{len(manifest.covers)} digests")
        findings.add(Problem(read.where, problem, *counts, REFINE_AGAIN))
    if not parent.landed and manifest.rows_in != parent.rows:
        rows = (f"{parent.rows} rows", f"{manifest.rows_in} rows")
        findings.add(Problem(read.where, f"read other rows than {parent.stage} kept", *rows, REFINE_AGAIN))
    if manifest.bytes_in != parent.bytes:
        sizes = (f"{parent.bytes} bytes", f"{manifest.bytes_in} bytes")
        findings.add(Problem(read.where, f"read other bytes than {parent.stage} kept", *sizes, REFINE_AGAIN))
    with findings.guarded(read.where, REFINE_AGAIN):
        check_conservation(stage_card(manifest.stage), parent, manifest)


def _count_rows(parent: Manifest, manifest: Manifest, account: Account) -> None:
    if parent.landed or parent.stage == COMPOSE:
        account.records = manifest.rows_in
    conserves = stage_card(manifest.stage).conserves
    if conserves == "tokens":
        return  # its rows are sequences
    for reason, count in (*manifest.rejected.items(), *manifest.quarantined.items()):
        key = reason if not reason.startswith("error:") else f"{manifest.stage} {reason}"
        account.rejected[key] = account.rejected.get(key, 0) + count
    if conserves == "copies":
        account.copies += parent.uses - parent.rows
    account.offspring += manifest.offspring_in
    account.published = manifest.rows
