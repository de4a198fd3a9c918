"""How many planted contradictions `filter_generated` finds, by kind, and how many faithful rewrites it rejects.

    python benchmarks/faithfulness.py [--json]

Pairs and contradictions are those of `tests/text/faith/planting.py`. A contradiction is found if the rewrite with it
fails something that the faithful one does not; a text or sentence of something else, if it is `invented`. Every third
pair is held out from the tuning of rules and bounds.
"""

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from pipeline_tasks.schema import GENERATED, N_GENERATED
from pipeline_tasks.stages.filter_generated import Params, decision_of
from pipeline_tasks.stages.filter_generated.deciding import failures_of
from pipeline_tasks.stages.filter_generated.measuring import FAITHFULNESS, TEXTS, unfold
from pipeline_tasks.stages.filter_language import PACKAGED
from tests.documents import documents
from tests.text.faith.planting import KINDS, UNGROUNDED, Pair, planted, read_pairs, read_retold

INVENTED = "filter_generated:invented"


@dataclass(frozen=True)
class Counts:
    """Contradictions of a kind: planted and found."""

    planted: int
    found: int

    @property
    def recall(self) -> float:
        """The share that was found."""
        return self.found / max(1, self.planted)


@dataclass(frozen=True)
class Result:
    """Counts by kind, faithful rewrites and those that were rejected, and kilobytes of text judged per second."""

    kinds: dict[str, Counts]
    faithful: int
    false_alarms: int
    kb_per_second: float


def judged(pairs: Sequence[Pair]) -> Result:
    """Return what the stage finds with its own bounds."""
    contradictions = [*planted(list(pairs))]
    started = time.perf_counter()
    faithful = failed([(pair, pair.rewrite) for pair in pairs])
    own = dict(zip((pair.number for pair in pairs), faithful, strict=True))
    found = failed([(each.pair, each.text) for each in contradictions])
    seconds = time.perf_counter() - started
    size = sum(len(pair.source) + len(pair.rewrite) for pair in pairs)
    size += sum(len(each.pair.source) + len(each.text) for each in contradictions)
    kinds = {}
    for kind in KINDS:
        caught = [
            any(kind not in UNGROUNDED or rule == INVENTED for rule, _ in fails - own[each.pair.number])
            for each, fails in zip(contradictions, found, strict=True)
            if each.kind == kind
        ]
        kinds[kind] = Counts(len(caught), sum(caught))
    return Result(kinds, len(pairs), sum(map(bool, faithful)), size / 1000 / seconds)


def failed(texts: Iterable[tuple[Pair, str]]) -> list[set[tuple[str, Any]]]:
    """Return what each text fails against its pair's source, as the stage judges it: rules and values."""
    given = [*texts]
    entries = [[_entry(text, len(pair.source))] for pair, text in given]
    table = documents(
        [pair.source for pair, _ in given],
        language=pa.array([pair.language for pair, _ in given]),
        **{TEXTS: pa.array(entries, pa.list_(GENERATED)), N_GENERATED: pa.array([1] * len(given), pa.int64())},
    )
    decision = decision_of(Params())
    rows = [
        row
        for batch in unfold(iter(table.to_batches()), prompts={}, model=PACKAGED)
        for row in batch.column(FAITHFULNESS).to_pylist()
    ]
    return [{(failure["rule"], failure["value"]) for failure in failures_of(row, decision)} for row in rows]


def _entry(text: str, length: int) -> dict[str, Any]:
    entry: dict[str, Any] = {field.name: None for field in GENERATED}
    return entry | {"prompt": "rewrite", "start": 0, "end": length, "text": text, "stop": "stop"}


def main() -> None:
    """Print recalls and false alarms of the pairs that were tuned on, of those held out, and of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    pairs = read_pairs()
    parts = {
        "tuned": [pair for pair in pairs if not pair.is_held_out],
        "held_out": [pair for pair in pairs if pair.is_held_out],
        "all": pairs,
    }
    results = {name: judged(part) for name, part in parts.items()}
    retold = [(pair, pair.rewrite) for pair in read_retold()]
    rejected = sum(map(bool, failed(retold)))
    if parser.parse_args().json:
        facts = {name: asdict(result) for name, result in results.items()}
        print(json.dumps({**facts, "retold": {"faithful": len(retold), "false_alarms": rejected}}, indent=2))
        return
    print(f"questions, summaries, lists: {rejected} of {len(retold)} rejected")
    for name, result in results.items():
        print(f"{name}: {result.false_alarms} of {result.faithful} rewrites rejected, {result.kb_per_second:.0f} kB/s")
        for kind, counts in result.kinds.items():
            print(f"  {KINDS[kind]:28} {counts.found:3} of {counts.planted:3}  {counts.recall:.3f}")


if __name__ == "__main__":
    main()
