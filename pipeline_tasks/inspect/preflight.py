"""Finds, before the first stage of a run, all that can be known to end it: in its input, recipe, engines, store, space.

`refinery run`, the first task of a run on Airflow and `refinery setup doctor` ask the same questions. What a run would
be refused for is said together, each finding with the thing and the way out.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.counted import counted
from pipeline_tasks.engines.address import is_cluster
from pipeline_tasks.engines.card import EngineCard, engine_card
from pipeline_tasks.errors import NoSpace, RefineryError, Transient
from pipeline_tasks.gate.checks import check_bounds, check_suites
from pipeline_tasks.inspect.empty_sections import empty_sections
from pipeline_tasks.landing.folder import refuse_overlap, require_place
from pipeline_tasks.landing.listing import Listing, list_snapshot, require_readable
from pipeline_tasks.recipe import LAND, LOCAL, Recipe, engine_of, is_trial, trial_of
from pipeline_tasks.run.recipe_faults import (
    Finding,
    check_secrets,
    file_faults,
    missing_files,
    order_faults,
    policy_faults,
    type_faults,
)
from pipeline_tasks.run.sizes import StageSize, handed_on, in_bytes, stage_sizes
from pipeline_tasks.store.storage import existing, require_conditional, require_folder, require_usable

T = TypeVar("T")

_DAY = re.compile(r"\d{4}-?\d{2}-?\d{2}")

INPUT, RECIPE, ENGINES, STORE, SPACE = AREAS = ("input", "recipe", "engines", "store", "space")
"""Where a finding is, in the order in which they are said: what is most often mistyped comes first."""

MANY = 2
"""Folders named by days from which on an input is taken for a folder of snapshots."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """What is to run: recipes, the first of which refines what landed at `input` (or builds, where that is "").

    `snapshot` is "" where nobody named it. `fields` are names of fields in the landed records, None where they are not
    known. `engines` are those of stages that differ from the recipe's, `*` for all others; those `elsewhere` may not be
    of this machine, and `addresses` are those that are known. `sample` is the share of the landed bytes that is read.
    """

    root: str
    recipes: tuple[Recipe, ...] = ()
    input: str = ""
    snapshot: str = ""
    fields: Mapping[str, str] | None = None
    engines: Mapping[str, str] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    addresses: Mapping[str, str] = field(default_factory=dict)
    sample: float = 1.0
    has_secrets: bool = True

    @property
    def is_on_s3(self) -> bool:
        """Whether the root is no folder of this machine."""
        return is_bucket(self.root)

    @property
    def accept(self) -> float:
        """The share of the promised files of the input that has to have landed whole."""
        return self.recipes[0].accept_partial if self.recipes else 1.0

    @property
    def clusters(self) -> frozenset[str]:
        """The engines whose address is known and of a cluster."""
        return frozenset(engine for engine, address in self.addresses.items() if is_cluster(address))

    def on_this_machine(self, recipe: Recipe) -> Recipe:
        """Return a recipe without the stages that run on clusters: the files of these may be there and not here."""
        pairs = zip(recipe.steps, self.engines_of(recipe), strict=True)
        return replace(recipe, steps=tuple(step for step, engine in pairs if engine not in self.clusters))

    def engines_of(self, recipe: Recipe) -> list[str]:
        """Return the engine of each stage of a recipe."""
        return [engine_of(step.stage, step.engine, self.engines) for step in recipe.steps]


def findings(planned: PlannedRun, known: Sequence[Finding] = ()) -> list[Finding]:
    """Return what is `known` and all that is found; files that recipes name are read if nothing is a fault before.

    To read them takes seconds.
    """
    listing, of_input = landed(planned)
    found = [*known, *of_input, *recipes(planned), *engines(planned), *store(planned), *space(planned, listing)]
    if not is_refused(found):
        found += files(planned)
    if not is_refused(found):
        found += history(planned, listing)
        found += upgrade(planned, listing)
    return list({finding.message: finding for finding in found}.values())


def is_refused(found: Sequence[Finding]) -> bool:
    """Return whether a run with these findings is refused."""
    return any(finding.fault for finding in found)


def refuse(found: Sequence[Finding]) -> None:
    """Raise the error of the only fault, or one that has all of them; nothing for notes alone."""
    faults = [finding for finding in found if finding.fault]
    if not faults:
        return
    lasting = (finding.error for finding in faults if not issubclass(finding.error, Transient))
    error = next(lasting, faults[0].error)
    if len(faults) == 1:
        raise error(faults[0].message)
    listed = "".join(f"\n  {number}. {finding.message}" for number, finding in enumerate(faults, 1))
    message = f"{counted(len(faults), 'thing')} to mend before the first stage:{listed}"
    raise error(message)


def tried(where: str, check: Callable[[], T]) -> tuple[T | None, list[Finding]]:
    """Return what a check returns, or None and the fault that it raises."""
    try:
        return check(), []
    except RefineryError as error:
        return None, [Finding(fault=True, where=where, message=str(error), error=type(error))]


# --- The input ------------------------------------------------------------------------------------------------------


def landed(planned: PlannedRun) -> tuple[Listing | None, list[Finding]]:
    """Return the files of the input, and find one that is not there, not whole, unreadable, or several snapshots."""
    if not planned.input:
        return None, []
    _, missing = tried(INPUT, lambda: require_place(planned.input))
    _, overlaps = tried(INPUT, lambda: refuse_overlap(planned.root, planned.input))
    if missing or overlaps:
        return None, [*missing, *overlaps]
    listing, faults = tried(INPUT, lambda: list_snapshot(planned.input, planned.snapshot, planned.accept))
    if listing is None:
        return None, faults
    return listing, [*_days(planned, listing), *_unread(planned, listing)]


def _unread(planned: PlannedRun, listing: Listing) -> list[Finding]:
    fields = planned.fields
    return [] if fields is None else tried(INPUT, lambda: require_readable(planned.input, listing, fields))[1]


def _days(planned: PlannedRun, listing: Listing) -> Iterator[Finding]:
    """Find a folder of days that nobody said to be one snapshot."""
    folders = {name.partition("/")[0] for name, _, _ in listing.files}
    if listing.promise or planned.snapshot or len(folders) < MANY or not all(map(_DAY.fullmatch, folders)):
        return
    first = min(folders)
    place = planned.input.rstrip("/")
    message = (
        f"{place} has {len(folders):,} folders that are named by days, {first} first: refine one after the other "
        f"(--input {place}/{first}), or say with --snapshot NAME that all are one snapshot"
    )
    yield Finding(fault=True, where=INPUT, message=message)


# --- The recipe -----------------------------------------------------------------------------------------------------


def recipes(planned: PlannedRun) -> Iterator[Finding]:
    """Find bounds that are none, stages out of order, policies that differ, absent files, and unknown secrets."""
    for recipe in planned.recipes:
        yield from (
            fault for check in (check_bounds, check_suites) for fault in tried(RECIPE, partial(check, recipe))[1]
        )
        by_params = (*policy_faults(recipe), *type_faults(recipe))
        faults = (*order_faults(recipe), *by_params, *missing_files(planned.on_this_machine(recipe)))
        yield from (_of_recipe(recipe, each) for each in (*faults, *empty_sections(recipe)))
        if planned.has_secrets:
            yield from tried(RECIPE, partial(check_secrets, recipe))[1]


def files(planned: PlannedRun) -> Iterator[Finding]:
    """Find models, lists, evaluation sets and tokenizers that are not what their stages read."""
    for recipe in planned.recipes:
        yield from (_of_recipe(recipe, fault) for fault in file_faults(planned.on_this_machine(recipe)))


def history(planned: PlannedRun, listing: Listing | None) -> Iterator[Finding]:
    """Find settings and models that the published snapshots before this one were not refined by."""
    from pipeline_tasks.inspect.recipe.history_faults import history_faults  # it loads what stages compute with

    snapshot = planned.snapshot or (listing.snapshot if listing else "")
    for recipe in planned.recipes:
        if recipe.versions is None and snapshot:
            name = recipe.name if planned.sample == 1 or is_trial(recipe.name) else trial_of(recipe.name)
            here = planned.on_this_machine(recipe)
            faults, broken = tried(RECIPE, lambda: list(history_faults(planned.root, here, name, snapshot)))  # noqa: B023 -- called at once
            yield from (_of_recipe(recipe, fault) for fault in faults or ())
            yield from broken


def upgrade(planned: PlannedRun, listing: Listing | None) -> Iterator[Finding]:
    """Note stages of the published snapshot that this release refines again because it has other code or libraries."""
    from pipeline_tasks.inspect.versions.outdated import outdated_snapshot  # it loads what stages compute with

    snapshot = planned.snapshot or (listing.snapshot if listing else "")
    for recipe in planned.recipes:
        if recipe.versions is None and snapshot and planned.sample == 1:
            found, broken = tried(RECIPE, partial(outdated_snapshot, planned.root, recipe.name, snapshot))
            yield from broken
            if found and found.stages:
                message = f"{found.account}; `refinery keep upgrade {planned.root}` lists all"
                yield Finding(fault=False, where=RECIPE, message=message)


def _of_recipe(recipe: Recipe, fault: Finding) -> Finding:
    return fault._replace(where=RECIPE, message=f"recipe {recipe.name}: {fault.where}: {fault.message}")


# --- Engines and the store ------------------------------------------------------------------------------------------


def engines(planned: PlannedRun) -> Iterator[Finding]:
    """Find engines that nobody brings, or that this machine has not what it takes for, and clusters without answer."""
    used = sorted({engine for recipe in planned.recipes for engine in planned.engines_of(recipe)})
    for engine in used:
        card, faults = tried(ENGINES, partial(engine_card, engine))
        yield from faults
        if card and engine not in {*planned.elsewhere, LOCAL}:
            yield from _lacks(engine, card, planned)
        if card and engine in planned.clusters:
            address = planned.addresses[engine]
            yield from tried(ENGINES, partial(card.require_reach, address, planned.root, planned.input))[1]
            yield from tried(ENGINES, partial(card.require_answer, address))[1]


def _lacks(engine: str, card: EngineCard, planned: PlannedRun) -> Iterator[Finding]:
    """Find recipes with stages on an engine of this machine that lacks something."""
    for recipe in planned.recipes:
        pairs = zip(recipe.steps, planned.engines_of(recipe), strict=True)
        stages = [step.stage for step, its in pairs if its == engine]
        for fault in tried(ENGINES, card.require_here)[1] if stages else ():
            message = (
                f"recipe {recipe.name} runs {counted(len(stages), 'stage')} on {card.title} of this machine "
                f"({stages[0]} first): {fault.message}; or run all stages without {card.title}, with `--engine local`"
            )
            yield fault._replace(message=message)


def store(planned: PlannedRun) -> list[Finding]:
    """Find a root that cannot be reached or written to, and a store that commits over what is committed."""
    for check in (require_folder, require_usable, require_conditional):
        _, faults = tried(STORE, partial(check, planned.root))
        if faults:
            return faults
    return []


# --- Space ----------------------------------------------------------------------------------------------------------


class Need(NamedTuple):
    """Bytes that a run will write below a folder, what they are, and what to do where there are fewer."""

    folder: Path
    bytes: int
    what: str
    way_out: str


def space(planned: PlannedRun, listing: Listing | None) -> Iterator[Finding]:
    """Find disks of this machine with less space than a run asks for by the measured costs of stages.

    A run into a new root is refused where there is less than half of it. Otherwise it is a note: an earlier run may
    have written a part already.
    """
    if listing is None or not planned.recipes:
        return
    by_disk: dict[int, list[Need]] = {}
    for need in needs(planned, listing):
        by_disk.setdefault(need.folder.stat().st_dev, []).append(need)
    for together in by_disk.values():
        free = shutil.disk_usage(together[0].folder).free
        yield from space_findings(together, free, is_new=not is_begun(planned.root))


def space_findings(together: Sequence[Need], free: int, *, is_new: bool) -> Iterator[Finding]:
    """Find that a disk has fewer bytes `free` than the needs on it ask for together."""
    wanted = sum(need.bytes for need in together)
    if free >= wanted:
        return
    parts = " and ".join(f"about {in_bytes(need.bytes)} of {need.what} in {need.folder}" for need in together)
    ways = ", or ".join(dict.fromkeys(need.way_out for need in together))
    message = f"the run will write {parts}, and the disk has {in_bytes(free)} free; free some, {ways}"
    yield Finding(fault=is_new and free * 2 < wanted, where=SPACE, message=message, error=NoSpace)


def needs(planned: PlannedRun, listing: Listing) -> Iterator[Need]:
    """Yield what a run of the files of a snapshot asks of the disks of this machine.

    Below the root it is what each stage stores, and what the stages of a build store of its documents. In TMPDIR Spark
    and Ray of this machine keep what they shuffle, and tasks build their shards: a stage that brings keys together
    takes what it reads there, and any stage a shard.
    """
    sizes = [size for recipe in planned.recipes for size in _sizes(planned, recipe, listing)]
    if not planned.is_on_s3:
        way_out = "name another root" + (", or try a part with --sample" if planned.sample == 1 else "")
        stored = sum(size.stored for _, size in sizes)
        yield Need(existing(planned.root), int(stored * planned.sample), "results", way_out)
    here = [size for engine, size in sizes if engine not in planned.elsewhere]
    scratch = max((size.read if size.buckets else size.stored // max(size.shards, 1) for size in here), default=0)
    way_out = "set TMPDIR to a folder with more"
    yield Need(Path(tempfile.gettempdir()), int(scratch * planned.sample), "temporary files", way_out)


def _sizes(planned: PlannedRun, recipe: Recipe, listing: Listing) -> Iterator[tuple[str, StageSize]]:
    """Yield the engine and size of each stage; a build reads what the recipe before it hands on."""
    files = [(name, size) for name, size, _ in listing.files]
    if recipe.versions is not None:
        refined = list(stage_sizes(planned.recipes[0], files))
        files = [("documents", handed_on(refined[-1]))]
    yield from zip(planned.engines_of(recipe), stage_sizes(recipe, files), strict=True)


def is_begun(root: str) -> bool:
    """Return whether something was committed to a local root: what a run finds there it does not write again."""
    return (Path(root.removeprefix("file://")) / LAND).is_dir()
