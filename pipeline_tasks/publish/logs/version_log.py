"""Dataset versions: an append-only log per recipe; each entry publishes one snapshot's manifests, or retracts them.

The entries are the chain of `log_chain`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

from pipeline_tasks.cards import has_sequences, refines, stage_names, stage_that
from pipeline_tasks.errors import ContractError, RecipeError, cause
from pipeline_tasks.nearest import nearest
from pipeline_tasks.publish.published import Promised, PublishedFile
from pipeline_tasks.recipe import COMPOSE, LAND
from pipeline_tasks.sealed import sha256
from pipeline_tasks.store import storage
from pipeline_tasks.store.log_chain import ChainEntry, dataset_log, entry_path, next_number, read_chain
from pipeline_tasks.store.log_chain import append as append_entry
from pipeline_tasks.store.reading import read_in_order, read_manifest

ENTRY_DEPTH = 2
"""Folders above an entry of the log, `datasets` and its recipe's; a file that lies higher is no entry."""

NAMED = 5
"""Snapshots or recipes that an error names: the newest, or last by name."""


@dataclass(frozen=True, slots=True)
class Version:
    """One published version: which manifests, of which snapshot, and its published files.

    `number` counts from 1 within the recipe. `manifests` and `verdicts` are references (`path@sha256:digest`) by
    stage. `files` are those that were published with it, below `prefix`; an index names those of shards. The dataset
    is the documents of every snapshot's newest version, less those that any of these versions supersedes. This version
    supersedes `superseded` documents of earlier snapshots by `superseding` documents of its own; `superseded_path` is
    the file that lists them ("" if there are none). `tokenizer` is the SHA-256 of its tokenizer ("" without). `at` is
    the time of publication, ISO 8601 in UTC ("" of an entry that an earlier release wrote). `saved` are the stages
    that saved history, and `partial` says whether a partition of one was quarantined: None of an entry of an earlier
    release, and of a build. `stages` are those of `manifests`, each after what it was made of (`stages_of`).
    """

    number: int
    recipe: str
    snapshot: str
    landing: str
    manifests: Mapping[str, str]
    verdicts: Mapping[str, str]
    prefix: str
    documents: int
    tokens: int
    sequences: int
    superseded: int = 0
    superseding: int = 0
    superseded_path: str = ""
    tokenizer: str = ""
    files: tuple[PublishedFile, ...] = ()
    at: str = ""
    saved: tuple[str, ...] | None = None
    partial: bool | None = None
    stages: tuple[str, ...] = ()

    @property
    def report(self) -> str:
        """The path of the version's report."""
        return next((file.path for file in self.files if file.path.startswith(f"{self.prefix}/report-")), "")

    @property
    def refined(self) -> str:
        """The reference of the documents of a snapshot's version: of the last stage that refined it.

        Versions of earlier releases may have tokens of their own behind it, and those that name no order have run no
        recipe whose last stage was not the last one of all that refine. RecipeError for a training dataset, which has
        none: its documents are those of snapshots.
        """
        ordered = self.stages or [stage for stage in stage_names() if stage in self.manifests]
        refined = [self.manifests[stage] for stage in ordered if stage != LAND and refines(stage)]
        if not refined or COMPOSE in self.manifests:
            message = (
                f"{self.recipe} is a training dataset; name a recipe whose snapshots it was built from by --recipe "
                f"(version {self.number} has no stage that refines)"
            )
            raise RecipeError(message)
        return refined[-1]

    def file(self, name: str) -> PublishedFile:
        """Return a published file by its name below `prefix`; ContractError if the version has none of that name."""
        for file in self.files:
            if file.path == f"{self.prefix}/{name}":
                return file
        message = f"version {self.number} of recipe {self.recipe} has no file {name}; {self.way_out}"
        raise ContractError(message)

    @property
    def again(self) -> str:
        """How the same bytes are made again."""
        if COMPOSE in self.manifests:
            return f"run `refinery build --again {self.number} --recipe {self.recipe}`"
        return self.rerun

    @property
    def rerun(self) -> str:
        """How what the version was made from is judged and published again."""
        if COMPOSE in self.manifests:
            return f"build {self.recipe} again"
        return f"run snapshot {self.snapshot} of recipe {self.recipe} again"

    @property
    def way_out(self) -> str:
        """The way out of a published file that is damaged or gone."""
        return f"{self.again}: publishing writes it anew"


@dataclass(frozen=True, slots=True)
class Retraction:
    """An entry that takes a snapshot out of the dataset and out of the history of later snapshots.

    `retracts` are the numbers of its versions, whose files are not changed; `at` is the time, ISO 8601 in UTC.
    """

    number: int
    recipe: str
    snapshot: str
    retracts: tuple[int, ...] = field(default=())
    reason: str = ""
    at: str = ""

    @property
    def account(self) -> str:
        """The time and the reason as text: `retracted on 2026-11-21 14:30 UTC: spam`."""
        when = f" on {self.at[:16].replace('T', ' ')} UTC" if self.at else ""
        return f"retracted{when}{f': {self.reason}' if self.reason else ''}"


def version_path(recipe: str, number: int) -> str:
    """Return the path of a version's entry."""
    return entry_path(recipe, number)


def log(root: str, recipe: str) -> list[Version | Retraction]:
    """Return all entries of a recipe, oldest first; ContractError unless their chain is whole."""
    return _entries(root, recipe, read_chain(root, dataset_log(recipe)))


def versions(root: str, recipe: str) -> list[Version]:
    """Return a recipe's versions, oldest first, with those of retracted snapshots."""
    return [entry for entry in log(root, recipe) if isinstance(entry, Version)]


def promised_files(root: str, recipe: str, prefix: str) -> Promised:
    """Return the files below a prefix that versions of a recipe name, by path."""
    named = [file for version in versions(root, recipe) if version.prefix == prefix for file in version.files]
    return {file.path: file for file in named}


def retractions(root: str, recipe: str) -> dict[str, Retraction]:
    """Return the current retractions by snapshot."""
    newest = _newest_by_snapshot(log(root, recipe))
    return {snapshot: entry for snapshot, entry in newest.items() if isinstance(entry, Retraction)}


def recipes(root: str) -> list[str]:
    """Return the recipes that have published into `root`."""
    paths = [entry.path.split("/") for entry in storage.connect(root).list("datasets")]
    return sorted({parts[1] for parts in paths if len(parts) > ENTRY_DEPTH})


def is_build(root: str, recipe: str) -> bool:
    """Return whether the versions of a recipe are training datasets, which were built from those of another."""
    return any(COMPOSE in version.manifests for version in versions(root, recipe)[-1:])


def datasets(root: str) -> list[str]:
    """Return the training datasets of a root."""
    return [name for name in recipes(root) if is_build(root, name)]


def built_versions(root: str) -> list[Version]:
    """Return the newest version of every training dataset of a root that is not retracted."""
    return [version for name in datasets(root) for version in latest_by_snapshot(root, name)]


def require_kind(root: str, recipe: str, *, builds: bool) -> None:
    """Raise RecipeError if the versions of a recipe are of the other kind: of snapshots, or training datasets."""
    if versions(root, recipe) and is_build(root, recipe) != builds:
        kinds = ("a refined snapshot", "a training dataset")
        message = (
            f"{root}: recipe {recipe} would publish {kinds[builds]}, and its versions there are each "
            f"{kinds[not builds]}; give the recipe another name"
        )
        raise RecipeError(message)


def stages_of(root: str, version: Version) -> tuple[str, ...]:
    """Return the stages of a version, each after the one that it was made of; a landing or composition is first."""
    return version.stages or tuple(read_in_order(root, version.manifests))


def stages_that(root: str, version: Version, are: Callable[[str], bool]) -> list[str]:
    """Return the stages of a version of which something holds, in order; nothing is read for a single one."""
    found = [stage for stage in version.manifests if are(stage)]
    return found if len(found) <= 1 else [stage for stage in stages_of(root, version) if stage in found]


def _newest_by_snapshot(entries: Iterable[Version | Retraction]) -> dict[str, Version | Retraction]:
    return dict(sorted({entry.snapshot: entry for entry in entries}.items()))


def _entries(root: str, recipe: str, chain: Sequence[ChainEntry]) -> list[Version | Retraction]:
    return [entry_of(root, recipe, entry.fields) for entry in chain]


def entry_of(root: str, recipe: str, fields: Mapping[str, Any]) -> Version | Retraction:
    """Return the entry that fields of the log describe; ContractError if they describe none."""
    try:
        if "retracts" in fields:
            return Retraction(**{**fields, "retracts": tuple(fields["retracts"])})
        files = tuple(PublishedFile(**file) for file in fields["files"])
        saved = fields.get("saved")
        lists = {"files": files, "saved": None if saved is None else tuple(saved)}
        return Version(**{**fields, **lists, "stages": tuple(fields.get("stages", ()))})
    except (ValueError, TypeError, KeyError) as error:
        path = f"{root}/{entry_path(recipe, int(fields['number']))}"
        message = (
            f"{path} is not a dataset version of this release ({cause(error)}); restore it from a backup, "
            "or publish into another root if an earlier release wrote it"
        )
        raise ContractError(message) from error


def current(root: str, recipe: str, snapshot: str = "") -> Version:
    """Return the newest version of a recipe (of one snapshot, if named); RecipeError when there is none."""
    entries = log(root, recipe)
    newest = _newest_by_snapshot(entries)
    for entry in reversed(entries):
        published = isinstance(entry, Version) and isinstance(newest[entry.snapshot], Version)
        if published and snapshot in ("", entry.snapshot):
            return cast("Version", entry)
    raise RecipeError(_unpublished(root, recipe, snapshot, newest))


def _unpublished(root: str, recipe: str, snapshot: str, newest: Mapping[str, Version | Retraction]) -> str:
    """Return the message for a recipe or snapshot without a version: retracted, or never published."""
    retracted = [
        entry for entry in newest.values() if isinstance(entry, Retraction) and snapshot in ("", entry.snapshot)
    ]
    if retracted:
        return "; ".join(_retracted(root, entry) for entry in retracted[-NAMED:])
    subject = f"snapshot {snapshot} of recipe {recipe}" if snapshot else f"recipe {recipe}"
    names = [name for name, entry in newest.items() if isinstance(entry, Version)] if newest else recipes(root)
    near = f"{nearest(snapshot if newest else recipe, names)} (published: {', '.join(names[-NAMED:])})" if names else ""
    return f"{root}: {subject} has not been published{near}; publish it with `refinery run {root} --input ...`"


def _retracted(root: str, entry: Retraction) -> str:
    undo = f"refinery retract --undo {entry.snapshot} {root} --recipe {entry.recipe}"
    return f"{root}: snapshot {entry.snapshot} of recipe {entry.recipe} was {entry.account}; `{undo}` brings it back"


def latest_by_snapshot(root: str, recipe: str, until: int | None = None) -> list[Version]:
    """Return the newest version of every snapshot that is not retracted, by snapshot; as of entry `until`, if named."""
    newest = _newest_by_snapshot(log(root, recipe)[:until])
    return [entry for entry in newest.values() if isinstance(entry, Version)]


def earlier(root: str, recipe: str, snapshot: str) -> list[Version]:
    """Return the newest version of every snapshot before this one: a run sees nothing of its own day or later.

    Snapshots are ordered as text, so that dates and `CC-MAIN-2026-45` come in order of time.
    """
    return [version for version in latest_by_snapshot(root, recipe) if version.snapshot < snapshot]


def append(root: str, fields: Mapping[str, Any]) -> Version:
    """Publish `fields` (those of `Version` but `number`) as the next version of their recipe.

    Returns the snapshot's newest version instead if it is the same (`unchanged`). RecipeError if the snapshot is
    retracted and the fields come from the same landed files, or a build is and they are the same sequences.
    """
    recipe, snapshot = str(fields["recipe"]), str(fields["snapshot"])
    while True:
        chain = read_chain(root, dataset_log(recipe))
        newest = unchanged(root, fields, _entries(root, recipe, chain))
        if newest is not None:
            return newest
        refuse_retracted(root, recipe, snapshot, fields["manifests"])
        version = Version(**{**fields, "number": next_number(chain), "at": _now()})
        if append_entry(root, dataset_log(recipe), chain, asdict(version)):
            return version


def unchanged(
    root: str, fields: Mapping[str, Any], entries: Sequence[Version | Retraction] | None = None
) -> Version | None:
    """Return the snapshot's newest version if it has the same fields, None if not.

    Its report may differ, as it shows the cost of runs; a version whose report is missing or damaged is published
    again.
    """
    known = log(root, str(fields["recipe"])) if entries is None else entries
    newest = _newest_by_snapshot(known).get(str(fields["snapshot"]))
    if not isinstance(newest, Version):
        return None
    same = _data(newest) == _data(Version(**{**fields, "number": newest.number}))
    return newest if same and _has_report(root, newest) else None


def _data(version: Version) -> Version:
    """Return a version without what two versions of the same data may have of their own: report, time, and release.

    Entries of earlier releases named the files of shards, too, which an index names.
    """
    report, own = version.report, f"{version.prefix}/"
    files = tuple(file for file in version.files if file.path.startswith(own) and file.path != report)
    return replace(version, files=files, at="", saved=None, partial=None, stages=())


def _has_report(root: str, version: Version) -> bool:
    store = storage.connect(root)
    path = version.report
    reports = [file for file in version.files if file.path == path]
    return all(store.size(file.path) == file.bytes and sha256(store.read(file.path)) == file.digest for file in reports)


def refuse_retracted(root: str, recipe: str, snapshot: str, manifests: Mapping[str, str]) -> None:
    """Raise RecipeError if the snapshot is retracted and manifests by stage are of the same landed files.

    A training dataset is the same if its packed sequences are: another selection or mixture may be published.
    """
    retraction = retractions(root, recipe).get(snapshot)
    if retraction is None:
        return
    retracted = [version for version in versions(root, recipe) if version.number in retraction.retracts]
    same = stage_that(has_sequences, manifests) if COMPOSE in manifests else LAND
    known = [version.manifests[same] for version in retracted if same in version.manifests]
    if _is_one_of(root, manifests.get(same, ""), known):
        way_out = (
            "to refine it anew, land other files than those that were retracted"
            if same == LAND
            else "to build anew, select or mix other documents than the retracted version has"
        )
        message = f"{_retracted(root, retraction)}; {way_out}"
        raise RecipeError(message)


def _is_one_of(root: str, referred: str, known: Sequence[str]) -> bool:
    """Return whether a manifest has the shards of one of others: they are the same whatever was taken down since."""
    if not referred or not known:
        return False
    return referred in known or read_manifest(root, referred).shards in [read_manifest(root, of).shards for of in known]


def retract(root: str, recipe: str, snapshot: str, reason: str = "") -> Retraction:
    """Retract a snapshot; return the existing entry if it is retracted. RecipeError if it was never published."""
    while True:
        chain = read_chain(root, dataset_log(recipe))
        entries = _entries(root, recipe, chain)
        own = [entry for entry in entries if entry.snapshot == snapshot]
        if not own:
            names = ", ".join(sorted({entry.snapshot for entry in entries})) or "published nothing"
            message = f"{root}: recipe {recipe} has published no snapshot {snapshot!r}; it has {names}"
            raise RecipeError(message)
        if isinstance(own[-1], Retraction):
            return own[-1]
        numbers = tuple(entry.number for entry in own if isinstance(entry, Version))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        retraction = Retraction(next_number(chain), recipe, snapshot, numbers, reason, now)
        if append_entry(root, dataset_log(recipe), chain, asdict(retraction)):
            return retraction


def _now() -> str:
    """Return the time of an entry; versions that follow each other within a second keep their order."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def restore(root: str, recipe: str, snapshot: str) -> Version:
    """Publish the last version of a retracted snapshot again; RecipeError if it is not retracted."""
    while True:
        chain = read_chain(root, dataset_log(recipe))
        entries = _entries(root, recipe, chain)
        if snapshot not in retractions(root, recipe):
            message = f"{root}: snapshot {snapshot!r} of recipe {recipe} is not retracted; there is nothing to undo"
            raise RecipeError(message)
        last = [entry for entry in entries if isinstance(entry, Version) and entry.snapshot == snapshot][-1]
        version = replace(last, number=next_number(chain), at=_now())
        if append_entry(root, dataset_log(recipe), chain, asdict(version)):
            return version
