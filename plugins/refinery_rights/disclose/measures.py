"""Tells which measures ran, as manifests show it: opt-outs, lists, personal data, and every stage with its reasons.

Stages are known by what their cards and their manifests say, so that a stage with other params or counts is told of
as it is. What did not run is said, too: silence would be taken for a measure.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from pipeline_tasks.cards import adds, has_sequences, known_card, repeats, stage_that
from pipeline_tasks.counted import counted
from pipeline_tasks.inspect.redactions import actions_of
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.removals import bins_of
from pipeline_tasks.stages.check_rights import ROBOTS_RECORD
from pipeline_tasks.store.reading import clears_personal_data
from refinery_rights.disclose.facts import Facts, StageTotal, most_first
from refinery_rights.disclose.page import Answer, Cell, Rows, Table
from refinery_rights.statements.statement import models_of, verdicts

READS_RIGHTS, COUNTS_WORDS = partial(adds, "opt_out"), partial(adds, "toxic_hits")
"""What a stage is asked: whether it reads what publishers say, and whether it counts words that offend."""

TAKEN_DOWN = ":taken_down"
"""How the reasons end of documents that were taken down."""

PII = "pii_"
"""What the names of profiles begin with that count personal data."""


def rights_answers(facts: Facts) -> dict[str, Answer]:
    """Return what was done about reservations of rights: signals, takedowns, and lists of addresses."""
    return {
        "Signals of opt-out that were read": _signals(facts),
        "Takedowns on request": _takedowns(facts),
        "Documents rejected because they were taken down": _rejected_as_taken_down(facts),
        "Lists of addresses that were refused": _lists(facts),
    }


def _signals(facts: Facts) -> Answer:
    stage = facts.stage(READS_RIGHTS)
    if stage is None:
        return Answer(
            "no stage of the recipe reads robots.txt, Content-Usage, TDMRep, RSL, X-Robots-Tag or meta robots; "
            "whatever the crawler honored is not recorded here",
            evidence=_every_stage(facts),
        )
    idle = f" It was idle: {'; '.join(stage.idle)}." if stage.idle else ""
    files = counted(stage.rejected.get(ROBOTS_RECORD, 0), "robots.txt file")
    pages = stage.rows_in - stage.rejected.get(ROBOTS_RECORD, 0)
    return Answer(
        f"the stage {stage.stage} read {pages:,} pages and {files}, and rejected {sum(_opt_outs(stage).values()):,} "
        f"pages, by the params and reasons below.{idle}",
        evidence=stage.evidence,
    )


def _opt_outs(stage: StageTotal) -> dict[str, int]:
    """Return the rejected pages by reason; a robots.txt that was read is no page."""
    return {reason: count for reason, count in stage.rejected.items() if reason != ROBOTS_RECORD}


def _every_stage(facts: Facts) -> tuple[str, ...]:
    return tuple(name for stage in facts.stages for name in stage.evidence)


def _takedowns(facts: Facts) -> Answer:
    if not facts.takedowns:
        return Answer("nothing was taken down: the log of takedowns is empty")
    kinds = ", ".join(f"{counted(count, kind)}" for kind, count in facts.taken_down.items()) or "nothing any more"
    return Answer(
        f"{counted(facts.takedowns, 'entry', 'entries')} of the log of takedowns; taken down now: {kinds}",
        evidence=facts.takedown_log,
    )


def _rejected_as_taken_down(facts: Facts) -> Answer:
    takedowns = [
        (count, stage.evidence)
        for stage in facts.stages
        for reason, count in stage.rejected.items()
        if reason.endswith(TAKEN_DOWN)
    ]
    evidence = tuple(dict.fromkeys(name for _, names in takedowns for name in names))
    return Answer(sum(count for count, _ in takedowns), "rows", evidence=evidence or _every_stage(facts))


def judges_addresses(stage: str) -> bool:
    """Return whether a stage finds pages unfit by their addresses alone."""
    card = known_card(stage)
    return card is not None and card.removes == "unfit" and card.reads.names == ["url"]


def _lists(facts: Facts) -> Answer:
    stage = facts.stage(judges_addresses)
    if stage is None:
        return Answer("none: the recipe has no filter_url", evidence=_every_stage(facts))
    named = dict.fromkeys(
        f"{name.removeprefix(f'{stage.stage}.')} SHA-256 {digest}"
        for manifest in stage.manifests
        for name, digest in models_of(manifest)
    )
    rejected = sum(count for reason, count in stage.rejected.items() if reason != f"{stage.stage}:bad_url")
    if not named:
        return Answer(f"none: {stage.stage} ran without lists", evidence=stage.evidence)
    return Answer(f"{'; '.join(named)}: {rejected:,} rows rejected", evidence=stage.evidence)


def rights_tables(facts: Facts) -> Iterator[Table]:
    """Yield the policy by signal, what was rejected, and what the kept documents were found to say."""
    stage = facts.stage(READS_RIGHTS)
    if stage is None:
        return
    policy = {name: _in_words(value) for manifest in stage.manifests for name, value in sorted(manifest.params.items())}
    yield Table("policy", "Policy by signal", ("signal", "action"), tuple(policy.items()), stage.evidence)
    yield Table("opt_outs", "Rejected by signal", ("reason", "rows"), tuple(_opt_outs(stage).items()), stage.evidence)
    for column in _named_columns(stage):
        rows = tuple(kept_by(stage, column).items())
        yield Table(f"kept_{column}", f"Kept documents by {column}", (column, "documents"), rows, stage.evidence)


def _in_words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _named_columns(stage: StageTotal) -> list[str]:
    columns = {
        name
        for manifest in stage.manifests
        for name, profile in manifest.metrics.get("kept", {}).items()
        if isinstance(profile, Mapping) and profile.get("kind") == "name"
    }
    return sorted(columns)


def kept_by(stage: StageTotal, column: str) -> dict[str, int]:
    """Return the documents that a stage kept by the names of a column, most first."""
    return most_first(bins_of(manifest.metrics, "kept", column) for manifest in stage.manifests)


# --- Illegal content -------------------------------------------------------------------------------------------------


def illegal_content(facts: Facts) -> dict[str, Answer]:
    """Return which stages can have taken out illegal content; none of them knows what a law forbids."""
    toxicity = facts.stage(COUNTS_WORDS)
    words = (
        Answer("none: the recipe has no filter_toxicity", evidence=_every_stage(facts))
        if toxicity is None
        else Answer(
            f"{toxicity.stage} read {toxicity.rows_in:,} documents and rejected {sum(toxicity.rejected.values()):,}",
            evidence=toxicity.evidence,
        )
    )
    return {
        "Lists of addresses that were refused": _lists(facts),
        "Words that offend, and adult content": words,
        "Classifiers of illegal content": Answer(
            "none: no stage of Refinery decides what is illegal", evidence=_every_stage(facts)
        ),
    }


def filters_table(facts: Facts) -> Iterator[Table]:
    """Yield what the stages rejected that look at addresses and at words."""
    rows: list[tuple[Cell, ...]] = []
    evidence: list[str] = []
    for is_it in (judges_addresses, COUNTS_WORDS):
        stage = facts.stage(is_it)
        if stage is not None:
            rows += [(stage.stage, reason, count) for reason, count in stage.rejected.items()]
            evidence += stage.evidence
    if rows:
        head = ("stage", "reason", "rows")
        yield Table("filters", "Rejected by address or words", head, tuple(rows), tuple(evidence))


# --- Personal data ---------------------------------------------------------------------------------------------------


def personal_data_answers(facts: Facts) -> dict[str, Answer]:
    """Return what was done about personal data."""
    stage = facts.stage(clears_personal_data)
    if stage is None:
        return {"Personal data": Answer("no stage looks for personal data", evidence=_every_stage(facts))}
    actions = dict.fromkeys(map(actions_line, stage.manifests))
    return {
        "Personal data": Answer(
            f"the stage {stage.stage} looked for the kinds below in {counted(stage.rows_in, 'document')} "
            f"({'; '.join(actions)}) and rejected {sum(stage.rejected.values()):,}; kinds that are not in the table "
            "were not looked for",
            evidence=stage.evidence,
        ),
        "Erasures on request": Answer(facts.erased, "rows of this version", evidence=facts.erasure_log)
        if facts.erasure_log
        else Answer("nothing was erased: the log of erasures is empty"),
    }


def actions_line(manifest: Manifest) -> str:
    """Return what was done about each kind that a run of the stage looked for, kinds with one action together."""
    actions = actions_of(manifest)
    groups = {each: [kind for kind, action in actions.items() if action == each] for each in actions.values()}
    return ", ".join(f"{action}: {', '.join(kinds)}" for action, kinds in groups.items()) or "every kind was kept"


def personal_data_table(facts: Facts) -> Iterator[Table]:
    """Yield how many findings of each kind there were, and in how many documents, of those that were kept."""
    stage = facts.stage(clears_personal_data)
    if stage is None:
        return
    findings: dict[str, list[int]] = {}
    for manifest in stage.manifests:
        for name, profile in manifest.metrics.get("kept", {}).items():
            if name.startswith(PII) and profile["count"]:  # null where the kind was kept
                total = findings.setdefault(name.removeprefix(PII), [0, 0])
                total[0] += int(profile["sum"])
                total[1] += int(profile["count"]) - int(profile["bins"].get("0", 0))
    rows: Rows = tuple((kind, *counts) for kind, counts in sorted(findings.items()))
    head = ("kind", "findings", "documents with any")
    note = "Of the documents that the stage kept. Counts alone: no value is stored."
    yield Table("personal_data", "Personal data by kind", head, rows, stage.evidence, note)


# --- All stages ------------------------------------------------------------------------------------------------------


def stages_table(facts: Facts) -> Table:
    """Return every stage with its rows: those in are those kept, rejected and quarantined."""
    rows = tuple(
        (
            stage.stage,
            f"{stage.title[:1].upper()}{stage.title[1:]}" or "-",
            stage.rows_in,
            stage.rows,
            sum(stage.rejected.values()),
            stage.quarantined,
            "; ".join(stage.idle) or "-",
        )
        for stage in facts.stages
    )
    head = ("stage", "what it does", "rows in", "rows kept", "rejected", "quarantined", "idle")
    names = [stage.stage for stage in facts.stages]
    repeating, packing = stage_that(repeats, names), stage_that(has_sequences, names)
    note = (
        f"Rows are documents. {repeating} writes each as often as it is used; the rows of {packing} are sequences of "
        "tokens."
        if packing
        else ""
    )
    return Table("stages", "Stages", head, rows, _every_stage(facts), note)


def reasons_table(facts: Facts) -> Table:
    """Return every reason for which rows were rejected."""
    rows = tuple((stage.stage, reason, count) for stage in facts.stages for reason, count in stage.rejected.items())
    return Table("reasons", "Rejected rows by reason", ("stage", "reason", "rows"), rows, _every_stage(facts))


def gates_table(facts: Facts) -> Table:
    """Return every gate that judged the data, its outcome, and why a person let pass what it refuses."""
    rows: list[tuple[Cell, ...]] = []
    cited: list[str] = []
    for stated in facts.stated:
        of = f"{stated.version.recipe} {stated.version.snapshot}"
        for each in verdicts(facts.root, [stated]):
            said = each["annotations"]
            rows.append((of, str(said["gate"]), str(said["outcome"]), str(said.get("override", "-"))))
            what = f"verdict of gate {said['gate']}, {of}"
            cited.append(facts.evidence.cite(each["name"], each["digest"]["sha256"], what))
    head = ("of", "gate", "outcome", "let pass by a person, because")
    return Table("gates", "Gates", head, tuple(rows), tuple(cited))
