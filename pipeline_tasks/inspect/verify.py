"""Re-checks what is stored: every digest, every manifest's conservation, and the chain from landed files to tokens."""

import argparse
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pipeline_tasks.errors import ContractError, RefineryError
from pipeline_tasks.inspect.command import EVERY, add_snapshot, print_result, versions_of
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish import version_log
from pipeline_tasks.recipe import LAND, STAGES, stage_card
from pipeline_tasks.run.runner import check_conservation
from pipeline_tasks.stage import LANDING
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest


@dataclass(slots=True)
class Account:
    """What was checked of one version, and the problems; `problems` is empty when all is well.

    `records` came in from the landed files. Each was kept, rejected or quarantined by some stage: `rejected` counts
    the rejected and quarantined ones by reason, and `published` documents are in the tokens.
    """

    version: version_log.Version
    files: int = 0
    shards: int = 0
    bytes: int = 0
    records: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    published: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def balanced(self) -> bool:
        """Whether every record that came in is published, or rejected with a reason."""
        return self.records == self.published + sum(self.rejected.values())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root and the snapshot."""
    add_snapshot(parser, EVERY)


def answer(options: argparse.Namespace) -> int:
    """Print the account of each version; return ContractError's exit code if there is a problem."""
    accounts = [verify(options.root, version) for version in versions_of(options)]
    facts = [account_facts(account) for account in accounts]
    print_result(options, facts, (line for account in accounts for line in account_lines(account)))
    return ContractError.exit_code if any(account.problems for account in accounts) else 0


def verify(root: str, version: version_log.Version) -> Account:
    """Re-read everything that a version names; problems are collected, not raised, so that all are reported."""
    account = Account(version)
    parent: Manifest | None = None
    for stage in (stage for stage in (LAND, *STAGES) if stage in version.manifests):
        try:
            manifest = read_manifest(root, version.manifests[stage])
        except RefineryError as error:
            account.problems.append(str(error))
            return account
        _check_bytes(root, manifest, account)
        if parent is not None:
            _check_link(parent, manifest, account)
            _count_rows(parent, manifest, account)
        parent = manifest
    if not account.balanced:
        account.problems.append(
            f"{account.records} records came in, {account.published} documents are published and "
            f"{sum(account.rejected.values())} were rejected or quarantined: the difference is unaccounted for"
        )
    return account


def _check_link(parent: Manifest, manifest: Manifest, account: Account) -> None:
    """Check that a stage covers its parent's shards once and that its rows add up."""
    name = f"{manifest.stage}/{manifest.fingerprint}"
    if manifest.covers != tuple(shard.digest for shard in parent.shards):
        account.problems.append(f"{name} does not cover the shards of {parent.stage} once each")
    if parent.fingerprint not in manifest.parents:
        account.problems.append(f"{name} was not made from {parent.stage}/{parent.fingerprint}")
    try:
        check_conservation(stage_card(manifest.stage), parent, manifest)
    except RefineryError as error:
        account.problems.append(str(error))


def _count_rows(parent: Manifest, manifest: Manifest, account: Account) -> None:
    if parent.landed:
        account.records = manifest.rows_in
    for reason, count in (*manifest.rejected.items(), *manifest.quarantined.items()):
        key = reason if not reason.startswith("error:") else f"{manifest.stage} {reason}"
        account.rejected[key] = account.rejected.get(key, 0) + count
    if stage_card(manifest.stage).conserves == "rows":
        account.published = manifest.rows


def _check_bytes(root: str, manifest: Manifest, account: Account) -> None:
    """Re-read every file that a manifest names and compare its digest."""
    name = f"{manifest.stage}/{manifest.fingerprint}"
    for shard in manifest.stored:
        landed = shard.path.startswith(LANDING)
        uri = f"{account.version.landing}/{shard.path.removeprefix(LANDING)}" if landed else f"{root}/{shard.path}"
        account.files += landed
        account.shards += not landed
        account.bytes += shard.bytes
        try:
            digest = _digest(uri)
        except (OSError, RefineryError) as error:
            account.problems.append(f"{uri}: named by {name} and not readable ({error})")
            continue
        if digest != shard.digest:
            account.problems.append(
                f"{uri}: its bytes are not those that {name} was committed with "
                f"(SHA-256 {digest[:16]}..., promised {shard.digest[:16]}...)"
            )


def _digest(uri: str) -> str:
    hasher = hashlib.sha256()
    with storage.open_landed(uri) as stream:
        while chunk := stream.read(8 * 1024 * 1024):
            hasher.update(chunk)
    return hasher.hexdigest()


def account_facts(account: Account) -> dict[str, Any]:
    """Return the account as JSON values."""
    version = account.version
    names = ("files", "shards", "bytes", "records", "published", "rejected", "problems")
    facts = {name: getattr(account, name) for name in names}
    return {"recipe": version.recipe, "version": version.number, "snapshot": version.snapshot, **facts}


def account_lines(account: Account) -> Iterator[str]:
    """Yield the account as lines for a person."""
    version = account.version
    yield f"{version.recipe} version {version.number}, snapshot {version.snapshot}"
    megabytes = account.bytes / 1e6
    yield f"  digests    {account.shards} shards and {account.files} landed files, {megabytes:,.1f} MB re-read"
    yield f"  records    {account.records:,} in = {account.published:,} documents published"
    for reason, count in sorted(account.rejected.items(), key=lambda pair: -pair[1]):
        yield f"             {count:>10,} {reason}"
    for problem in account.problems:
        yield f"  PROBLEM    {problem}"
    yield "  every record is accounted for" if not account.problems else f"  {len(account.problems)} problems"
