"""Re-checks what is stored: every digest, every manifest's conservation, and the chain from landed files to tokens."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pipeline_tasks.errors import RefineryError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish import version_log
from pipeline_tasks.recipe import STAGES, stage_card
from pipeline_tasks.run.runner import check_conservation
from pipeline_tasks.stage import LANDING
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest


@dataclass(slots=True)
class Account:
    """What was checked of one version, and what was wrong; `problems` is empty when all is well.

    `records` came in from the landed files; each ended kept, rejected or quarantined in some stage,
    and `published` documents are in the tokens.
    """

    version: version_log.Version
    files: int = 0
    shards: int = 0
    bytes: int = 0
    records: int = 0
    aside: dict[str, int] = field(default_factory=dict)
    published: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def balanced(self) -> bool:
        """Tell whether every record that came in is published or set aside with a reason."""
        return self.records == self.published + sum(self.aside.values())


def verify(root: str, version: version_log.Version) -> Account:
    """Re-read everything that a version names; problems are collected, not raised, so that all are seen."""
    account = Account(version)
    chain = [(stage, version.manifests[stage]) for stage in ("land", *STAGES) if stage in version.manifests]
    parent: Manifest | None = None
    for stage, path in chain:
        try:
            made = read_manifest(root, path)
        except RefineryError as error:
            account.problems.append(str(error))
            return account
        _check_bytes(root, version, made, account)
        if parent is not None:
            _check_link(stage, parent, made, account)
        parent = made
    if not account.balanced:
        account.problems.append(
            f"{account.records} records came in, {account.published} documents are published and "
            f"{sum(account.aside.values())} were set aside: the difference is unaccounted for"
        )
    return account


def _check_link(stage: str, parent: Manifest, made: Manifest, account: Account) -> None:
    """Check that a stage covers its parent's shards once and that its rows add up."""
    if made.covers != tuple(shard.digest for shard in parent.shards):
        account.problems.append(f"{stage}/{made.fingerprint} does not cover the shards of {parent.stage} once each")
    if parent.fingerprint not in made.parents:
        account.problems.append(f"{stage}/{made.fingerprint} was not made from {parent.stage}/{parent.fingerprint}")
    card = stage_card(stage)
    try:
        check_conservation(card, parent, made)
    except RefineryError as error:
        account.problems.append(str(error))
    if parent.stage == "land":
        account.records = made.rows_in
    for reason, count in (*made.rejected.items(), *made.quarantined.items()):
        key = reason if not reason.startswith("error:") else f"{stage} {reason}"
        account.aside[key] = account.aside.get(key, 0) + count
    if card.conserves == "rows":
        account.published = made.rows


def _check_bytes(root: str, version: version_log.Version, made: Manifest, account: Account) -> None:
    for shard in made.stored:
        landed = shard.path.startswith(LANDING)
        uri = f"{version.landing}/{shard.path.removeprefix(LANDING)}" if landed else f"{root}/{shard.path}"
        account.files += landed
        account.shards += not landed
        account.bytes += shard.bytes
        try:
            found = _digest(uri)
        except (OSError, RefineryError) as error:
            account.problems.append(f"{uri}: named by {made.stage}/{made.fingerprint} and not readable ({error})")
            continue
        if found != shard.digest:
            account.problems.append(
                f"{uri}: its bytes are not those that {made.stage}/{made.fingerprint} was committed with "
                f"(SHA-256 {found[:16]}..., promised {shard.digest[:16]}...)"
            )


def _digest(uri: str) -> str:
    hasher = hashlib.sha256()
    with storage.open_landed(uri) as stream:
        while chunk := stream.read(8 * 1024 * 1024):
            hasher.update(chunk)
    return hasher.hexdigest()


def facts(account: Account) -> dict[str, Any]:
    """Return the account for programs."""
    one = account.version
    names = ("files", "shards", "bytes", "records", "published", "aside", "problems")
    told = {name: getattr(account, name) for name in names}
    return {"recipe": one.recipe, "version": one.number, "snapshot": one.snapshot, **told}


def told(account: Account) -> Iterator[str]:
    """Yield the account as lines for a person."""
    one = account.version
    yield f"{one.recipe} version {one.number}, snapshot {one.snapshot}"
    megabytes = account.bytes / 1e6
    yield f"  digests    {account.shards} shards and {account.files} landed files, {megabytes:,.1f} MB re-read"
    yield f"  records    {account.records:,} in = {account.published:,} documents published"
    for reason, count in sorted(account.aside.items(), key=lambda pair: -pair[1]):
        yield f"             {count:>10,} {reason}"
    for problem in account.problems:
        yield f"  PROBLEM    {problem}"
    yield "  every record is accounted for" if not account.problems else f"  {len(account.problems)} problems"
