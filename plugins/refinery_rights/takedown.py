"""`refinery takedown` records what must not be used, and publishes the affected training datasets without it."""

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.compute

from pipeline_tasks.cards import has_sequences, one_that, repeats, stage_that
from pipeline_tasks.cli.judging import judged
from pipeline_tasks.counted import counted
from pipeline_tasks.engines.each import HERE
from pipeline_tasks.errors import GateRefused, RecipeError
from pipeline_tasks.gate.checks import check_overrides
from pipeline_tasks.inspect.command import (
    add_json,
    add_refining,
    add_root,
    on_of,
    overrides_of,
    print_lines,
    print_result,
    recipe_of,
)
from pipeline_tasks.inspect.search.find import add_documents, current_versions, find, named_entries
from pipeline_tasks.ledger.lost_log import require_takedowns
from pipeline_tasks.publish.datasets.published_shards import open_build
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.takedowns import current_rows, require_ever
from pipeline_tasks.recipe import BUILD, COMPOSE, LOCAL, TAKEDOWN, is_trial, recipe_names
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.schema import KNOWN_BY
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.gates import JudgeRequest
from pipeline_tasks.service.requests.publication import PublishRequest
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.store.storage import absolute
from pipeline_tasks.store.taken_down import Takedown, takedowns, taken_down
from pipeline_tasks.text.urls.takedown import DOC, URL, Entry, TakenDown, evidence, names_of, of_entries
from pipeline_tasks.text.urls.takedown_entries import parse_lines, valid_entries
from pipeline_tasks.upkeep.followers import follow
from refinery_rights.erasing.near import found_lines, near, near_lines
from refinery_rights.opted_out import VERB as OPTED_OUT
from refinery_rights.opted_out import OptedOut, opted_out, reason_of
from refinery_rights.taking_down import entries_of as entries_of_deletions
from refinery_rights.taking_down import read_deletions, take_down

pc: Any = pyarrow.compute

NEAR_REASON = "near duplicates of what is taken down"


@dataclass(frozen=True, slots=True)
class Republished:
    """A dataset before and after: its versions, the uses of documents that are out, its shards, and the new ones."""

    recipe: str
    before: int
    after: int
    uses: int
    shards: int
    packed_again: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, what to take down, and why."""
    add_root(parser)
    add_documents(parser)
    parser.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="X",
        help="a file with a URL, site or id in each line",
    )
    parser.add_argument(
        "--landing", default="", metavar="URI", help="a landed snapshot: what its source says it has deleted"
    )
    parser.add_argument("--rights", action="store_true", help="what is opted out by newer records and robots.txt files")
    parser.add_argument(
        "--robots", action="append", default=[], metavar="X", help="a folder or archive of robots.txt files (--rights)"
    )
    parser.add_argument("--recipe", default="", help="by whose policy (--rights; default: that of the newest version)")
    parser.add_argument("--reason", default="", help="why; kept in the log (--landing, --rights: what was found)")
    parser.add_argument("--undo", action="store_true", help="allow again what was taken down")
    parser.add_argument("--dry-run", action="store_true", help="only show where it is used; record nothing")
    parser.add_argument("--near", action="store_true", help="list near duplicates of what is taken down now")
    parser.add_argument("--also-near", action="store_true", help="take near duplicates of what is taken down down, too")
    parser.add_argument("--list", action="store_true", help="list what is recorded, and what is taken down now")
    add_refining(parser)
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Record the takedown and publish every dataset that has such documents again; return the exit code.

    The entry is recorded before versions are read, and a build reads the entries after its version is recorded: of an
    entry and a version of the same moment, this command finds the version, or the build finds the entry and fails.
    """
    if options.list or options.near:
        return _list(options) if options.list else _near(options)
    _require_fitting(options)
    root, overrides = absolute(options.root), overrides_of(options)
    found = _found(root, options)
    if found.is_sought and not found.entries:
        print_result(options, found.facts, found.lines)
        return 0
    reason = options.reason.strip() or found.reason
    if not options.dry_run and not reason:
        message = "say why with --reason; the log keeps it"
        raise RecipeError(message)
    check_overrides(overrides, gates_of_takedown())
    entries = entries_of(options, found)
    if options.undo:
        require_ever(root, entries)
    recorded = None if options.dry_run else take_down(root, entries, reason, undo=options.undo)
    affected = list((_returning if options.undo else _leaving)(root, entries))
    if not options.json:
        lines = [*found.lines, *affected_lines(affected, undo=options.undo), *empty_lines(root)]
        print_lines([_recorded_line(recorded, dry_run=options.dry_run), *lines])
    datasets = [part.version for part in affected if COMPOSE in part.version.manifests and not options.dry_run]
    republished = [*_republished(root, datasets, options.engine or LOCAL, overrides)]
    snapshots = [_snapshot(part.version) for part in affected if COMPOSE not in part.version.manifests]
    facts: dict[str, Any] = {"entries": entries, **_counts(affected), "snapshots": snapshots, **found.facts}
    facts |= {"takedown": recorded and recorded.facts, "republished": [*map(asdict, republished)]}
    followed = [] if options.dry_run else list(follow(root))
    left = [] if options.dry_run or options.undo or not affected else [f"what was made before has it: {_erase(root)}"]
    singly = snapshot_lines(root, snapshots, dry_run=options.dry_run)
    lines = [*map(republished_line, republished), *followed, *singly, *left]
    print_result(options, facts, lines)
    return 0


def gates_of_takedown() -> tuple[str, str]:
    """Return the gates of the stages that a dataset is published again by."""
    return TAKEDOWN, stage_that(has_sequences)


def _erase(root: str) -> str:
    return f"`{shlex.join(['refinery', 'erase', root])}` erases it there"


def _list(options: argparse.Namespace) -> int:
    """Print every entry of the log, oldest first, and what is taken down now: as JSON all of it, else how much."""
    root = absolute(options.root)
    require_takedowns(root)
    log, count = takedowns(root), sum(taken_down(root).held_by_kind.values())
    held = [(row["kind"], row["value"]) for row in current_rows(root)] if options.json else []
    facts = {"takedowns": [takedown.facts for takedown in log], "taken_down": held}
    print_result(options, facts, [*map(log_line, log), f"{counted(count, 'entry', 'entries')} taken down now"])
    return 0


def _near(options: argparse.Namespace) -> int:
    """Print the near duplicates of what is taken down now."""
    root = absolute(options.root)
    require_takedowns(root)
    found = near(root)
    print_result(options, [*map(asdict, found)], [*near_lines(found)])
    return 0


def log_line(takedown: Takedown) -> str:
    """Return an entry of the log as a line: when, what, and why."""
    few = [f"{kind} {value}" for kind, value in takedown.entries]
    named = ", ".join(few) if few else counted(takedown.count, "entry", "entries")
    what = "allowed again" if takedown.undo else "taken down"
    return f"{takedown.number:>4}  {takedown.at[:16].replace('T', ' ')}  {what}: {named}  ({takedown.reason})"


def entries_of(options: argparse.Namespace, found: "_Found") -> tuple[Entry, ...]:
    """Return what the options name and what was found for them; RecipeError if it is none."""
    entries = [*named_entries(options), *found.entries]
    for file in options.file:
        entries += parse_lines(_lines(file), file)
    if not entries:
        message = (
            f"{options.landing} says of no published document that it was deleted; there is nothing to take down"
            if options.landing
            else "name what to take down with --url, --site, --document, --text, --file, --landing, --rights or "
            "--also-near"
        )
        raise RecipeError(message)
    return valid_entries(entries)


@dataclass(frozen=True, slots=True)
class _Found:
    """What is to be taken down by what a landing, publishers or deduplication say, the reason, and words for it.

    `is_sought` if nothing may be found, and that is no fault.
    """

    entries: tuple[Entry, ...] = ()
    reason: str = ""
    lines: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_sought: bool = False


def _require_fitting(options: argparse.Namespace) -> None:
    """Raise RecipeError for options of which one is of another."""
    if (options.robots or options.recipe) and not options.rights:
        message = "--robots and --recipe are of --rights; add it"
        raise RecipeError(message)
    if sum(map(bool, (options.landing, options.rights, options.also_near))) > 1:
        message = "--landing, --rights and --also-near have a reason each; name one"
        raise RecipeError(message)
    if (options.rights or options.also_near) and options.undo:
        message = "--rights and --also-near find what to take down; name what is allowed again, as by --url"
        raise RecipeError(message)


def _found(root: str, options: argparse.Namespace) -> _Found:
    if options.landing:
        return _deleted(root, options.landing)
    if options.rights:
        recipe = ""
        with suppress(RecipeError):  # several recipes, of which nobody has named one
            recipe = recipe_of(options)
        on = on_of(OPTED_OUT, recipe, options, HERE.workers)
        opted = opted_out(root, options.recipe, options.robots, on)
        lines = [*opted_out_lines(opted)] if opted else ["no published document is opted out by what is known now"]
        entries = tuple((URL, each.url) for each in opted)
        facts = {"opted_out": [*map(asdict, opted)]}
        return _Found(entries, reason_of(opted) if opted else "", tuple(lines), facts, is_sought=True)
    if options.also_near:
        require_takedowns(root)
        alike = near(root)
        entries = tuple((DOC, id_) for id_ in sorted({each.id for each in alike}))
        facts = {"near": [*map(asdict, alike)]}
        return _Found(entries, NEAR_REASON, tuple(found_lines(alike)), facts, is_sought=True)
    return _Found()


def _deleted(root: str, landing: str) -> _Found:
    deletions = read_deletions(landing)
    entries, unknown = entries_of_deletions(root, deletions)
    if unknown:
        ids = counted(unknown, "deleted record")
        sys.stderr.write(f"refinery: {ids} of {landing} are of no published document of its source\n")
    return _Found(tuple(entries), deletions.reason)


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        message = f"--file {file} cannot be read ({error}); name a file of UTF-8 text"
        raise RecipeError(message) from error


# --- What is affected -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Affected:
    """A current version that documents leave or come back to: at how many places, in how many shards, and their ids."""

    version: Version
    places: int
    shards: int
    ids: frozenset[str]


def _leaving(root: str, entries: Sequence[Entry]) -> Iterator[Affected]:
    """Yield the datasets that use what entries name, then the snapshots that have it."""
    for version in current_versions(root):
        uses = list(find(root, [version], entries))
        if uses:
            yield Affected(version, len(uses), len({use.shard for use in uses}), frozenset(use.id for use in uses))
    named, datasets = of_entries(entries), version_log.datasets(root)
    for recipe in version_log.recipes(root):
        for version in version_log.latest_by_snapshot(root, recipe) if recipe not in datasets else ():
            ids = [*_documents(root, version, named)]
            if ids:
                yield Affected(version, len(ids), 0, frozenset(ids))


def _documents(root: str, version: Version, named: TakenDown) -> Iterator[str]:
    """Yield the ids of the documents of a snapshot's version that are named."""
    for batch in read_shards(root, read_manifest(root, version.refined).shards, KNOWN_BY):
        yield from batch["id"].filter(pc.is_valid(evidence(named, batch))).to_pylist()


def _returning(root: str, entries: Sequence[Entry]) -> Iterator[Affected]:
    """Yield the datasets that were published without documents that nothing but the entries takes down."""
    undone = frozenset(names_of(entries))
    others = replace(taken_down(root), but=undone)
    named = of_entries(entries)
    for version in current_versions(root):
        if TAKEDOWN in version.manifests:
            manifest = read_manifest(root, version.manifests[TAKEDOWN])
            ids: list[str] = []
            for batch in read_shards(root, manifest.rejects, KNOWN_BY):
                by_entries, by_others = (evidence(taken, batch) for taken in (named, others))
                ids += batch["id"].filter(pc.and_(pc.is_valid(by_entries), pc.is_null(by_others))).to_pylist()
            if ids:
                yield Affected(version, len(ids), len(manifest.rejects), frozenset(ids))


def _counts(affected: Sequence[Affected]) -> dict[str, int]:
    ids = {id_ for part in affected for id_ in part.ids}
    return {"uses": sum(part.places for part in affected), "documents": len(ids)}


def _snapshot(version: Version) -> dict[str, str]:
    return {"recipe": version.recipe, "snapshot": version.snapshot, "landing": version.landing}


# --- Publishing again -------------------------------------------------------------------------------------------


def _republished(
    root: str, versions: Sequence[Version], engine: str, overrides: Mapping[str, str]
) -> Iterator[Republished]:
    """Publish datasets again, one after the other; GateRefused with what is left to do."""
    for at, version in enumerate(versions):
        try:
            yield republish(root, version, engine, overrides)
        except GateRefused as refusal:
            left = ", ".join(f"{dataset.recipe} version {dataset.number}" for dataset in versions[at:])
            message = (
                f"{refusal}\nThe entry stays recorded, and new snapshots and builds follow it. Not published again: "
                f"{left}. Run the same command to go on with them, or one with the opposite of --undo to take it back"
            )
            raise GateRefused(message) from refusal


def republish(root: str, version: Version, engine: str, overrides: Mapping[str, str]) -> Republished:
    """Take documents out behind the shuffle of a version, pack, and publish: other shards stay as they are.

    The mixture is not made anew: it is what was planned, without the documents that leave. A version that is published
    meanwhile is the one whose mixture counts: the work begins anew from it. RecipeError if the dataset is retracted
    meanwhile.
    """
    own: list[int] = []
    while True:
        manifests, verdicts, uses = _without(root, version, engine, overrides)
        newer = _newer(root, version, own)
        if newer is None:
            again = handle(PublishRequest(root, version.recipe, BUILD, manifests, verdicts))
            own.append(again["version"])
            newer = _newer(root, version, own)
        if newer is None:
            break
        version = newer
    after = version_log.current(root, version.recipe, BUILD)
    old, new = ({entry["bin"]["path"] for entry in open_build(root, of).index["shards"]} for of in (version, after))
    return Republished(version.recipe, version.number, again["version"], uses, len(new), len(new - old))


def _newer(root: str, version: Version, own: Sequence[int]) -> Version | None:
    """Return the newest version of a dataset that others published after this one; None if there is none."""
    version_log.current(root, version.recipe, BUILD)
    since = [each for each in version_log.versions(root, version.recipe) if each.number > version.number]
    return next((each for each in reversed(since) if each.number not in own), None)


def _without(
    root: str, version: Version, engine: str, overrides: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str], int]:
    """Return manifests and verdicts of a version without what is taken down, and the uses of documents that leave."""
    manifests, verdicts = dict(version.manifests), dict(version.verdicts)
    parent, packing = one_that(repeats, manifests), stage_that(has_sequences, manifests)
    removed = 0
    for stage, params in ((TAKEDOWN, {}), (packing, read_manifest(root, manifests[packing]).params)):
        request = RefineRequest(root, stage, params, parent, engine=engine, recipe=version.recipe, snapshot=BUILD)
        reply = handle(request)
        if stage == TAKEDOWN:
            removed = sum(reply["rejected"].values())
        manifests[stage] = parent = reply["manifest"]
        before, override = version.manifests.get(stage, ""), overrides.get(stage, "")
        judgment = JudgeRequest(root, parent, before, override=override, recipe=version.recipe, snapshot=BUILD)
        verdicts[stage] = judged(judgment)
    manifests[packing] = manifests.pop(packing)
    return manifests, verdicts, removed


# --- Lines ------------------------------------------------------------------------------------------------------


def _recorded_line(recorded: Takedown | None, *, dry_run: bool) -> str:
    if dry_run:
        return "nothing is recorded: --dry-run"
    return f"takedown {recorded.number} is recorded" if recorded else "it was recorded before"


SHOWN = 10
"""Addresses that are shown of those that are opted out."""


def opted_out_lines(opted: Sequence[OptedOut]) -> Iterator[str]:
    """Yield the signals that are against addresses, of the first of them."""
    for each in opted[:SHOWN]:
        signal = each.signal
        said = f"{signal.value} ({signal.source}{f' of {signal.at}' if signal.at else ''}, to {signal.agent})"
        yield f"  {signal.signal:<16} {each.url}  {said}"
    if len(opted) > SHOWN:
        yield f"  and {len(opted) - SHOWN:,} more (--json lists all)"


def affected_lines(affected: Sequence[Affected], *, undo: bool) -> Iterator[str]:
    """Yield how many documents leave each version, or come back to it."""
    for part in affected:
        version, documents = part.version, counted(len(part.ids), "document")
        where = f"snapshot {version.snapshot}" if version.snapshot != BUILD else f"{part.shards:,} of its shards"
        use = f"gets back {documents}" if undo else f"{documents} at {counted(part.places, 'place')}, {where}"
        yield f"{version.recipe} version {version.number}: {use}"
    if not affected:
        yield "no dataset is without such a document" if undo else "no current version has such a document"


def empty_lines(root: str) -> Iterator[str]:
    """Yield what a takedown means in a root that has published nothing, as any folder is one."""
    if not version_log.recipes(root):
        yield f"{root} has published nothing: what lands there is refused. Are your datasets elsewhere? Name their root"


def republished_line(again: Republished) -> str:
    """Return what became of a dataset."""
    return (
        f"{again.recipe} version {again.before} -> {again.after}: without {counted(again.uses, 'use')} of documents; "
        f"{again.packed_again:,} of {counted(again.shards, 'shard')} packed again, the others are the same files"
    )


def snapshot_lines(root: str, snapshots: Sequence[Mapping[str, str]], *, dry_run: bool = False) -> Iterator[str]:
    """Yield how to take documents out of single snapshots; a trial of one is retracted."""
    if snapshots:
        then = "would have it" if dry_run else "have it"
        uses = "no build would use it any more" if dry_run else "no build uses it"
        yield f"{uses}; these snapshots {then} until they are refined again, trials until they are retracted:"
    own: set[str] = set()  # recipes that are a user's: `refinery run` takes the path of the file, which no root keeps
    for snapshot in snapshots:
        recipe, name = snapshot["recipe"], snapshot["snapshot"]
        if is_trial(recipe):
            words = ["retract", name, root, "--recipe", recipe, "--reason", "takedown"]
        else:
            own |= {recipe} - set(recipe_names())
            file = f"{recipe}.yaml" if recipe in own else recipe
            words = ["run", root, "--recipe", file, "--snapshot", name, "--input", snapshot["landing"]]
        yield f"  {shlex.join(['refinery', *words])}"
    if own:
        yield f"of {', '.join(sorted(own))} give the path of the recipe's file"
