"""Applies a policy of retention, so that a kill at any moment leaves what every reader finds whole.

Of what manifests and versions name, the log of erasures says what came in its place before anything is removed; what
nothing names is removed. A second application looks at the root again, and goes on with what is left.
"""

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.sealed import sha256
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import LOG, Erased, Stored, newest
from pipeline_tasks.store.protocol import Store
from pipeline_tasks.upkeep.retention.plan import BLANK, COLD, DELETE, REMOVE, Plan, Step
from pipeline_tasks.upkeep.retention.rows import expire
from pipeline_tasks.upkeep.rewriting.replacing import TOGETHER, commit


def apply(plan: Plan, by: str) -> None:
    """Do the steps of a plan; RecipeError if the bucket does not have a storage class of the policy.

    An object that is gone since it was planned is left out.
    """
    named = [step for step in plan.steps if step.action in (BLANK, REMOVE)]
    for start in range(0, len(named), TOGETHER):
        since = newest(plan.root)
        objects = [each for step in named[start : start + TOGETHER] if (each := _gone(plan.root, step)) is not None]
        if objects:
            commit(plan.root, objects, by, since, retention=plan.policy.name)
    with Ledger.open(ledger_of(plan.root)) as ledger:
        ledger.record_log(plan.root, LOG)
    store = storage.connect(plan.root)
    for step in plan.steps:
        if step.action == DELETE:  # one by one: the list of an export goes before its files
            store.delete(step.path)
        elif step.action == COLD:
            _make_cold(store, step)


def _gone(root: str, step: Step) -> Erased | None:
    """Return what the log says of an object: rewritten blank, or removed. None if there is nothing to say."""
    try:
        if step.action == BLANK:
            return expire(root, step.path, step.rows)
        body = storage.connect(root).read(step.path)
    except FileNotFoundError:
        return None
    return Erased(Stored(step.path, len(body), sha256(body)), None, 0)


def _make_cold(store: Store, step: Step) -> None:
    try:
        stored_as = store.transition(step.path, step.storage_class)
    except FileNotFoundError:
        return
    if stored_as != step.storage_class:
        message = (
            f"{store.root}/{step.path}: the store was asked for the class {step.storage_class} and keeps {stored_as}; "
            "remove cold_days and storage_class from the policy: it has no such class"
        )
        raise RecipeError(message)
