"""`refinery keep retention` applies a policy of how long objects are kept: what expires, what goes elsewhere."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pipeline_tasks.counted import counted
from pipeline_tasks.inspect.command import add_json, add_root, print_result, whoami
from pipeline_tasks.upkeep.retention.applying import apply
from pipeline_tasks.upkeep.retention.plan import BLANK, COLD, DELETE, REMOVE, Plan, Step, find_steps
from pipeline_tasks.upkeep.retention.policy import load_policy

CENT = 0.01

DONE: Mapping[str, str] = {
    BLANK: "blank: texts and addresses go, places and reasons stay",
    REMOVE: "remove, as the log of erasures says",
    DELETE: "remove",
    COLD: "to a colder class",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the policy, and whether to apply it."""
    add_root(parser)
    parser.add_argument(
        "--policy", default="default", metavar="NAME", help="a policy, or the path of its YAML (default)"
    )
    parser.add_argument("--apply", action="store_true", help="do it; without it, only list")
    parser.add_argument(
        "--who",
        "--by",
        dest="by",
        metavar="NAME",
        default="",
        help="who applies it, for the log (default: user and machine)",
    )
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Print what the policy asks for; with `--apply`, do it."""
    plan, facts = retain(options.root, options.policy, is_applied=options.apply, by=options.by)
    print_result(options, facts, lines(plan, is_applied=options.apply))
    return 0


def retain(root: str, policy: str, *, is_applied: bool, by: str = "") -> tuple[Plan, dict[str, Any]]:
    """Return what a policy asks for of a root, and as JSON values; do it if it is to be applied."""
    plan = find_steps(root, load_policy(policy))
    if is_applied:
        apply(plan, by or whoami())
    return plan, {**plan_facts(plan), "applied": is_applied}


def plan_facts(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON values: totals by kind and action, what is idle and why, prices, and every step."""
    return {
        "policy": plan.policy.name,
        "kinds": [
            {
                "kind": kind,
                "action": action,
                "objects": len(steps),
                "bytes": sum(step.bytes for step in steps),
                "freed": sum(step.freed for step in steps),
                "saving_a_month": round(sum(step.saving for step in steps), 6),
                "fee": round(sum(step.fee for step in steps), 6),
            }
            for (kind, action), steps in _grouped(plan).items()
        ],
        "idle": plan.idle,
        "texts_stay": plan.texts_stay,
        "currency": plan.policy.prices.currency,
        "prices": {"source": plan.policy.prices.source, "as_of": plan.policy.prices.as_of},
        "steps": [asdict(step) for step in plan.steps],
    }


def lines(plan: Plan, *, is_applied: bool) -> Iterator[str]:
    """Yield a plan for a person: by kind what happens and what it saves, then what is idle."""
    prices = plan.policy.prices
    for (kind, action), steps in _grouped(plan).items():
        to = f" {steps[0].storage_class}" if action == COLD else ""
        yield (
            f"{kind:<13}{counted(len(steps), 'object'):>15}  {sum(step.bytes for step in steps):>15,} bytes  "
            f"{sum(step.freed for step in steps):>15,} freed  {_money(plan, steps):>16}/month  {DONE[action]}{to}"
        )
    for kind, reason in plan.idle.items():
        yield f"{kind:<13}idle: {reason}"
    if plan.texts_stay:
        yield (
            f"{counted(plan.texts_stay, 'row')} that old rest on rows of the stage that was judged: their texts and "
            "addresses stay there, with those of the rows that were kept"
        )
    fee = sum(step.fee for step in plan.steps)
    once = f" (for {fee:,.2f} once)" if fee else ""
    yield (
        f"{'applied' if is_applied else 'to apply with --apply'}: {counted(len(plan.steps), 'object')}, "
        f"{sum(step.freed for step in plan.steps):,} bytes freed, {_money(plan, plan.steps)} a month saved{once}"
    )
    yield f"prices are of {prices.as_of}, from {prices.source}"


def _money(plan: Plan, steps: Sequence[Step]) -> str:
    saved = sum(step.saving for step in steps)
    return (
        f"{saved:,.2f} {plan.policy.prices.currency}"
        if saved >= CENT or not saved
        else f"< {CENT} {plan.policy.prices.currency}"
    )


def _grouped(plan: Plan) -> dict[tuple[str, str], list[Step]]:
    groups: dict[tuple[str, str], list[Step]] = {}
    for step in plan.steps:
        groups.setdefault((step.kind, step.action), []).append(step)
    return groups
