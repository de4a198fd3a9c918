"""The log of a root's ablations: which of two training datasets gave the better models, and who let a worse one pass.

It is in the root of each arm, so that a ledger can be made anew.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime

from pipeline_tasks.errors import ContractError, cause
from pipeline_tasks.store.log_chain import ChainEntry, Log, append, read_chain

FOLDER = "ablations"

LOG = Log(
    FOLDER,
    {"log": FOLDER},
    "ablation {number}",
    f"restore it from a backup, or remove {FOLDER} and run the same `refinery ablate` again: results of runs are kept",
)

COMPARISON, ATTRIBUTION, MIXTURE = "comparison", "attribution", "mixture"
"""Kinds of an entry: two arms that a person named; a recipe, and itself without a stage, among other stages; or the
mixture of a dataset that was to be beaten, and the one that a search found."""


@dataclass(frozen=True, slots=True)
class AblatedArm:
    """A training dataset of an ablation.

    `dataset` is ROOT/NAME@VERSION as a person named it, `recipe` its name there and `version` its number (0 if the root
    was gone when the ablation was recorded; then what follows is empty). `made_from` are the recipes of its snapshots,
    `manifests` are references by stage as the log of versions has them, and `fingerprint` is that of its packed
    sequences. `digest` is that of what the loader read. `choices` are what its own recipe and those of its snapshots
    chose (`inspect.recipe.choices`), by their names; empty in an entry of an earlier release. `weights` are the shares
    of groups in an arm of a `mixture`, none in others.
    """

    dataset: str
    recipe: str
    version: int
    made_from: tuple[str, ...]
    manifests: Mapping[str, str]
    fingerprint: str
    digest: str
    choices: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RateDifference:
    """Bits per byte of the second arm minus those of the first at a learning rate, with the 95 % interval."""

    rate: float
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Ablation:
    """An entry of the log: what was trained on both arms, and what it said of the second beside the first.

    `tokens` are those of each run, `seeds` are how many each arm and rate had. `held_out` is the digest of the
    scored documents, and `documents` are how many (0 in an entry of an earlier release). `detectable` is the
    smallest difference that the seeds show, in bits per byte. `seconds` are those of all runs. `override` says who
    let a refused outcome pass and why ("" if nobody did). `evidence` is the reference of the object in the root
    that has its curves and groups ("" in an entry of an earlier release). The intervals of an `attribution` hold
    for all stages of its run together, and each stage has an entry. Those of a `mixture` are of the runs that
    judged it, and of no proxy that chose it. `code` is the release of Refinery and `at` the time, ISO 8601 in UTC;
    `number` and `at` are set by `record_ablation`.
    """

    arms: tuple[AblatedArm, AblatedArm]
    size: str
    tokens: int
    seeds: int
    held_out: str
    differences: tuple[RateDifference, ...]
    outcome: str
    detectable: float
    seconds: float
    code: str
    override: str = ""
    evidence: str = ""
    number: int = 0
    at: str = ""
    kind: str = COMPARISON
    documents: int = 0

    @property
    def decisive(self) -> RateDifference:
        """The difference at the larger rate."""
        return max(self.differences, key=lambda difference: difference.rate)


def ablations(root: str) -> list[Ablation]:
    """Return all ablations, oldest first; ContractError unless their chain is whole."""
    return [_ablation(root, entry) for entry in read_chain(root, LOG)]


def record_ablation(root: str, ablation: Ablation) -> Ablation:
    """Append an ablation; return the newest entry that says the same, if there is one.

    One without an override says the same as one that has it: a repeated command adds nothing.
    """
    while True:
        chain = read_chain(root, LOG)
        same = [known for known in ablations(root) if _says(known, ablation)]
        if same:
            return same[-1]
        fields = asdict(replace(ablation, at=datetime.now(UTC).isoformat(timespec="seconds")))
        if append(root, LOG, chain, fields):
            return ablations(root)[len(chain)]


def _says(known: Ablation, ablation: Ablation) -> bool:
    override = known.override if not ablation.override else ablation.override
    return replace(ablation, number=known.number, at=known.at, code=known.code, override=override) == known


def _ablation(root: str, entry: ChainEntry) -> Ablation:
    fields = {name: value for name, value in entry.fields.items() if name != "log"}
    try:
        first, second = (AblatedArm(**{**arm, "made_from": tuple(arm["made_from"])}) for arm in fields["arms"])
        differences = tuple(RateDifference(**raw) for raw in fields["differences"])
        return Ablation(**{**fields, "arms": (first, second), "differences": differences})
    except (ValueError, TypeError, KeyError) as error:
        message = (
            f"{root}/{LOG.entry_path(entry.number)} is not an ablation of this release ({cause(error)}); {LOG.way_out}"
        )
        raise ContractError(message) from error
