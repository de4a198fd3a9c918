"""Says before anything runs what an installed release makes outdated in a root, why, what it costs, and what stays."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.ask.parts import Column, Note, Part, Table
from pipeline_tasks.ask.question import Question
from pipeline_tasks.cards import known_cards
from pipeline_tasks.constraints import OptionalWord
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.versions.outdated import OutdatedVersion, outdated
from pipeline_tasks.libraries import present
from pipeline_tasks.manifest import READ, WRITER
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import is_trial
from pipeline_tasks.run.sizes import in_bytes
from pipeline_tasks.seams import REFINERY

SHOWN = 8
"""Snapshots of a recipe whose stages are listed; more of them have the same reasons."""


@dataclass(frozen=True, slots=True)
class Params:
    """Of which recipe."""

    root: str
    recipe: Annotated[OptionalWord, "recipe or dataset (default: all in ROOT)"] = ""


def answer(params: Params) -> Answer:
    """Return what is outdated; its exit code is ContractError's if a version cannot be read by this release."""
    found = outdated_versions(params.root, params.recipe)
    code = ContractError.exit_code if any(each.unreadable for each in found) else 0
    parts = [*_parts(params.root, found)]
    return Answer("What this release makes outdated", parts, upgrade_facts(params.root, found), exit_code=code)


def outdated_versions(root: str, recipe: str = "") -> list[OutdatedVersion]:
    """Return the newest version of each snapshot of each recipe and dataset, with what is outdated of it.

    RecipeError for a recipe that has published nothing. Trials are left out: nothing is built from them.
    """
    names = [recipe] if recipe else [name for name in version_log.recipes(root) if not is_trial(name)]
    if recipe and recipe not in version_log.recipes(root):
        version_log.current(root, recipe)  # it raises: nothing is published
    return [outdated(root, version) for name in names for version in version_log.latest_by_snapshot(root, name)]


def upgrade_facts(root: str, found: Sequence[OutdatedVersion]) -> dict[str, Any]:
    """Return what is outdated as JSON values."""
    names = sorted({name for card in known_cards() for name in card.libraries})
    return {
        "root": root,
        "release": present([REFINERY]).get(REFINERY, ""),
        "reads": {"manifest": list(READ)},
        "writer": WRITER,
        "libraries": present(names),
        "versions": [_facts(each) for each in found],
    }


def _facts(found: OutdatedVersion) -> dict[str, Any]:
    version = found.version
    about = {"recipe": version.recipe, "snapshot": version.snapshot, "number": version.number}
    stages = [asdict(stage) for stage in found.stages]
    return {**about, "outdated": stages, "current": list(found.current), "unreadable": found.unreadable}


def _parts(root: str, found: Sequence[OutdatedVersion]) -> Iterator[Part]:
    """Yield the release, what of each recipe is outdated, why, at what cost, and what stays."""
    yield Note(f"Release {present([REFINERY]).get(REFINERY, 'of a checkout')} writes by {WRITER}.")
    yield Note(
        f"It reads manifests of formats {' and '.join(map(str, READ))}; a ledger of an earlier one is brought forward "
        "when it is opened."
    )
    if not found:
        yield Note(f"{root} has no published version: nothing in it can be outdated.")
        return
    behind, lost = [each for each in found if each.stages], [each for each in found if each.unreadable]
    for name in dict.fromkeys(each.version.recipe for each in found):
        yield Note(_account(name, [each for each in found if each.version.recipe == name]))
    if lost:
        yield Table(
            LOST, [_named(each) | {"problem": each.unreadable} for each in lost], "Versions that cannot be read"
        )
    if behind:
        yield Table(STAGES, [*_stage_rows(behind)], "Stages that a run would refine again")
        cost = " and ".join([*_seconds(behind), f"{in_bytes(sum(each.stores for each in behind))} written"])
        again = f"To refine {counted(len(behind), 'version')} again costs {cost}"
        yield Note(f"{again}; nothing is refined until somebody runs it.")
    stay = f"Every {'other ' if lost else ''}published version is read, verified, traced and trained from as before"
    yield Note(f"{stay}; new snapshots take the history of the published ones.")
    yield Note("Objects of a root are never written over, and no other part of it has to change.")


def _account(name: str, found: Sequence[OutdatedVersion]) -> str:
    behind, lost = sum(bool(each.stages) for each in found), sum(bool(each.unreadable) for each in found)
    up_to_date = f"{len(found) - behind - lost} up to date, {behind} outdated"
    return f"{name}: {counted(len(found), 'snapshot')}, {up_to_date}{f', {lost} not readable' if lost else ''}"


def _named(found: OutdatedVersion) -> dict[str, object]:
    return {"recipe": found.version.recipe, "snapshot": found.version.snapshot}


def _stage_rows(behind: Sequence[OutdatedVersion]) -> Iterator[dict[str, object]]:
    """Yield the outdated stages of each recipe; of snapshots that are outdated by the same reasons once."""
    by_reasons: dict[tuple[object, ...], list[OutdatedVersion]] = {}
    for each in behind:
        why = (each.version.recipe, *((stage.stage, stage.why) for stage in each.stages))
        by_reasons.setdefault(why, []).append(each)
    for alike in by_reasons.values():
        names = [each.version.snapshot for each in alike]
        shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        for at, stage in enumerate(alike[0].stages):
            stages = [each.stages[at] for each in alike]
            known = [each.seconds for each in stages if each.seconds is not None]
            sums = {"reads": sum(each.reads for each in stages), "stores": sum(each.stores for each in stages)}
            named = {"recipe": alike[0].version.recipe, "snapshots": shown, "stage": stage.stage, "why": stage.why}
            yield {**named, **sums, "seconds": sum(known) if known else None}


STAGES = (
    Column("recipe"),
    Column("snapshots"),
    Column("stage"),
    Column("seconds", "core time", "seconds"),
    Column("reads", "read", "bytes"),
    Column("stores", "written", "bytes"),
    Column("why"),
)

LOST = (Column("recipe"), Column("snapshot"), Column("problem"))

QUESTION = Question(Params, answer)


def _seconds(found: Sequence[OutdatedVersion]) -> list[str]:
    known = [each.seconds for each in found if each.seconds is not None]
    lacking = len(found) - len(known)
    if not known:
        return ["seconds that the ledger does not have"]
    lacks = f", which lacks those of {counted(lacking, 'version')}" if lacking else ""
    return [f"{sum(known):,.1f} core seconds by the ledger{lacks}"]
