"""The page of gates: the facts that each suite bounds."""

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline_tasks.cli.reference.markdown import generated_note, table
from pipeline_tasks.gate.batches import BATCHES
from pipeline_tasks.gate.facts import FACTS
from pipeline_tasks.gate.facts.snapshots import SNAPSHOT_FACTS, VERDICT_FACTS
from pipeline_tasks.gate.suites import EXPECTATIONS, batch_of, is_bound, learned_from, read_suite
from pipeline_tasks.scorers.report import FACTS as CHECK_FACTS
from pipeline_tasks.scorers.report import NONSENSE as KINDS

HEAD = """
After each stage a gate computes facts of the manifest and bounds them by two suites: `every_stage` and the stage's own.
A recipe changes bounds under `gates:`. A `critical` bound refuses the manifest, a `warning` only warns. Few rows are
judged, too: a share, quantile, mean or change has the interval that its rows leave open (99 % on each side). A bound is
*violated* if the whole interval is outside, and *undecided*, which warns, if only the value is. From 1,000 rows on
(10,000 for comparisons) the value itself is judged. [Decision 17](../decisions/0017-gates-by-intervals.md) has the
reasons. *Needs* are facts that must reach a value before the bound applies.

A *learned* bound has no limits of its own. They are the median of the `trailing` seven published snapshots, or the
value of the `previous` one, plus and minus a band: the largest of 5.19 median absolute deviations, the share of the
median that the table names, the absolute value that it names, and what chance explains. A median needs three snapshots.
`<name>.*` is each reason or language that a snapshot has. [Decision 29](../decisions/0029-gates-that-learn.md) has the
sources.
"""

FACTS_HEAD = """
Shares are 0-1 of the input rows. Changes, `*_psi` and `*_ks` compare with the same stage's manifest of the previous
published snapshot; a population stability index is steady below 0.1 and has moved above 0.25 (Siddiqi, Credit Risk
Scorecards, 2006). `*_ks` of 0.1 says that a tenth of the rows are on the other side of some value.
"""

SNAPSHOT_HEAD = """
The gate `publish` judges a snapshot before it is published. A bound on `documents` below 1 is refused: only a person's
override publishes a snapshot without documents.
"""

CHECK_HEAD = """
`refinery model check` judges a model that scores documents by the suite `scorer_check` on a sample of texts. Nonsense
is made of the texts themselves.
"""


VERDICT_HEAD = """
Before the first stage of a recipe that `requires` a verdict, the gate `verdict` judges what the ablations of the root
say of it ([how](../how-to/refine/judge-a-recipe.md#a-recipe-that-requires-a-verdict)).
"""


BATCHES_HEAD = """
A suite may hold any expectation of Great Expectations that reads a frame, over a batch that its `meta` (or that of the
whole suite) names: `{"batch": "rows"}`. `expect_column_max_to_be_between` over `facts` is a bound, which intervals
judge and recipes change; any other expectation is met or not, as Great Expectations says. Verdicts and Data Docs have
how many rows do not meet one, and the ids of some, and never a value. `REFINERY_EXPECTATIONS` names a folder of suites
of your own, which are added to these ([how](../how-to/operate/handle-a-refused-gate.md#a-suite-of-your-own)).
"""


def gates_page() -> str:
    """Return the page as Markdown."""
    suites = map(read_suite, sorted(EXPECTATIONS.glob("*.json")))
    head = ["# Gates\n", generated_note("`expectations/` and `pipeline_tasks/gate/`"), HEAD.strip() + "\n"]
    head += ["## Batches\n", BATCHES_HEAD.strip() + "\n"]
    head += [*table(("batch", "what it has"), ([f"`{name}`", has] for name, has in BATCHES.items())), ""]
    rows = ([f"`{name}`", meaning] for name, meaning in FACTS.items())
    computed = ["## Facts\n", FACTS_HEAD.strip() + "\n", *table(("fact", "meaning"), rows)]
    whole = ([f"`{name}`", meaning] for name, meaning in SNAPSHOT_FACTS.items())
    computed += ["\n## Facts of a snapshot\n", SNAPSHOT_HEAD.strip() + "\n", *table(("fact", "meaning"), whole)]
    required = ([f"`{name}`", meaning] for name, meaning in VERDICT_FACTS.items())
    computed += [
        "\n## Facts of a required verdict\n",
        VERDICT_HEAD.strip() + "\n",
        *table(("fact", "meaning"), required),
    ]
    named = (
        [f"`auc.{kind}`", f"share of pairs in which a text scores higher than {meaning}"]
        for kind, meaning in KINDS.items()
    )
    checked = ([f"`{name}`", meaning] for name, meaning in CHECK_FACTS.items() if "<" not in name)
    computed += ["\n## Facts of a scorer's check\n", CHECK_HEAD.strip() + "\n"]
    computed += table(("fact", "meaning"), [*checked, *named])
    return "\n".join([*head, *computed, *(line for suite in suites for line in _section(suite))]) + "\n"


def _section(suite: Mapping[str, Any]) -> Iterator[str]:
    """Yield the bounds of a suite; its `needs` hold for each of them that has none of its own."""
    needs = suite["meta"].get("needs", {})
    yield f"\n## {suite['name']}\n"
    yield from table(
        ("fact", "min", "max", "learned", "severity", "needs", "a violation usually means", "what to do"),
        (
            [
                f"`{_fact(bound, suite)}`",
                _number(bound["kwargs"].get("min_value")),
                _number(bound["kwargs"].get("max_value")),
                _rule(learned_from(bound["meta"])),
                bound["severity"],
                ", ".join(f"{name} {value:g}" for name, value in bound["meta"].get("needs", needs).items()),
                bound["notes"],
                bound["meta"]["remedy"],
            ]
            for bound in suite["expectations"]
        ),
    )


def _fact(bound: Mapping[str, Any], suite: Mapping[str, Any]) -> str:
    """Return the fact that is bounded, or the batch, type and column of another expectation."""
    column = str(bound["kwargs"].get("column", ""))
    return column if is_bound(bound, suite) else f"{batch_of(bound, suite)}: {bound['type']} {column}".strip()


def _rule(learned: Mapping[str, Any]) -> str:
    """Return what a bound is learned from with its band, "" for a bound with limits."""
    floor = [f"{learned['floor']:.0%}".replace("%", " %")] if "floor" in learned else []
    least = [f"{learned['least']:g}"] if "least" in learned else []
    return " ".join([learned["from"], "±", " or ".join(floor + least)]) if learned else ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
