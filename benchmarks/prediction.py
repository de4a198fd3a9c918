"""Predicts what a run of any size takes from unit costs that `scale.py` measured on smaller ones.

    python benchmarks/scale.py --sizes 100 400 --pair 0 --engines --json | tail -1 > small.json
    python benchmarks/prediction.py small.json --megabytes 1600 [--json]
    python benchmarks/prediction.py small.json --megabytes 433e6 --files 90000 --cores 1000

Every quantity of every step is a constant and a cost per MB of HTML, fitted through the measured sizes (least squares).
A tokenizer is the exception: it is trained on no more than `tokenize: train: bytes` of text, so training grows up to
the size that has so much. Objects and requests grow with files, and not with bytes. Nothing else is in the model: it
has no term for a stage that would grow faster than its input, and none for a slow network.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pipeline_tasks.cards import stage_card
from pipeline_tasks.recipe import MAX_PARTITIONS, load_recipe
from pipeline_tasks.stages.tokenize.params import Training

MEGABYTE = 10**6
HOUR = 3600
TOKENIZE = "tokenize"
Facts = Mapping[str, Any]


class Line(NamedTuple):
    """A constant and a cost per unit."""

    constant: float
    unit: float

    def at(self, size: float) -> float:
        """Return the value at a size."""
        return self.constant + self.unit * size


def fitted(points: Sequence[tuple[float, float]]) -> Line:
    """Return the line through points by least squares; a line that falls is a constant."""
    middle, level = (sum(values) / len(points) for values in zip(*points, strict=True))
    spread = sum((size - middle) ** 2 for size, _ in points)
    unit = max(0.0, sum((size - middle) * (value - level) for size, value in points) / spread) if spread else 0.0
    return Line(level - unit * middle, unit)


@dataclass(frozen=True, slots=True)
class Model:
    """The measured runs on one core, by MB of HTML, and how many MB one of their files has."""

    runs: Mapping[float, Facts]
    file: float

    @property
    def enough(self) -> float:
        """MB of HTML whose documents have as much text as a tokenizer is trained on."""
        size, smallest = min(self.runs.items())
        return float(Training().bytes * size / max(1, smallest["trained"]))

    def step(self, name: str, quantity: str) -> Line:
        """Return the line of one quantity of a step."""
        return fitted([(size, run["steps"][name][quantity]) for size, run in self.runs.items()])

    def seconds(self, name: str, size: float) -> float:
        """Return the processor time of a step at a size."""
        if name != TOKENIZE:
            return self.step(name, "cpu").at(size)
        points = [(min(at, self.enough), self._training(run)) for at, run in self.runs.items()]
        return self.step(name, "tasks").at(size) + fitted(points).at(min(size, self.enough))

    @staticmethod
    def _training(run: Facts) -> float:
        step = run["steps"][TOKENIZE]
        return float(step["cpu"] - step["tasks"])

    def whole(self, quantity: str) -> Line:
        """Return the line of a quantity of whole runs."""
        return fitted([(size, run[quantity]) for size, run in self.runs.items()])

    def predicted(self, size: float, files: float = 0) -> dict[str, Any]:
        """Return what a run takes; `files` are as large as those of the measured runs unless they are counted."""
        steps = list(next(iter(self.runs.values()))["steps"])
        cpu = {name: round(self.seconds(name, size), 2) for name in steps}
        by_file = (files or size / self.file) * self.file
        return {
            "cpu": cpu,
            "total_cpu": round(sum(cpu.values()), 1),
            "bytes": round(self.whole("bytes").at(size)),
            "shuffled": round(sum(self.step(name, "shuffled").at(size) for name in steps)),
            "objects": round(self.whole("objects").at(by_file)),
            "requests": round(sum(self.step(name, "requests").at(by_file) for name in steps)),
        }


def read_model(path: Path, file: float) -> Model:
    """Return the model of the runs that `scale.py --json` printed."""
    runs = json.loads(path.read_text())["runs"]
    sizes = {name.removeprefix("local-"): run for name, run in runs.items() if name.startswith("local-")}
    return Model({float(size): run for size, run in sorted(sizes.items(), key=lambda item: float(item[0]))}, file)


def airflow_tasks(recipe: str, files: float) -> int:
    """Return the task instances of a run: the most that a stage is mapped over, its seal and its gate, and the ends."""
    steps = [stage_card(step.stage) for step in load_recipe(recipe).steps]
    return 4 + sum(2 + (min(MAX_PARTITIONS, round(files)) if card.splits else 0) for card in steps)


def compared(predicted: Facts, measured: Facts) -> dict[str, float]:
    """Return predicted / measured of the quantities of a run that was measured afterwards."""
    total = {name: measured[name] for name in ("bytes", "objects")}
    total["total_cpu"] = measured["total"]["cpu"]
    return {name: round(predicted[name] / value, 3) for name, value in total.items()}


def main() -> None:
    """Print the prediction, and with --json one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path, help="the last line of `scale.py --json`, in a file")
    parser.add_argument("--megabytes", type=float, default=1600, help="MB of HTML")
    parser.add_argument("--files", type=float, default=0, help="landed files (default: of the measured runs' size)")
    parser.add_argument("--file", type=float, default=50, help="MB of HTML in a file of the measured runs")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--recipe", default="web")
    parser.add_argument("--against", type=Path, help="what `scale.py --json` printed of the run that was predicted")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    facts = read_model(options.measured, options.file).predicted(options.megabytes, options.files)
    files = options.files or options.megabytes / options.file
    facts |= {"tasks": airflow_tasks(options.recipe, files), "core_hours": round(facts["total_cpu"] / HOUR, 2)}
    for name, seconds in facts["cpu"].items():
        print(f"{name:<18}{seconds:>16,.1f} s")
    hours = facts["total_cpu"] / options.cores / HOUR
    print(f"{'all':<18}{facts['total_cpu']:>16,.1f} s, {hours:,.2f} h if all cores work")
    print(f"{'below the root':<18}{facts['bytes'] / MEGABYTE:>16,.0f} MB in {facts['objects']:,} objects")
    print(f"{'shuffled':<18}{facts['shuffled'] / MEGABYTE:>16,.0f} MB")
    print(f"{'requests':<18}{facts['requests']:>16,}\n{'Airflow tasks':<18}{facts['tasks']:>16,}")
    if options.against:
        largest = max(read_model(options.against, options.file).runs.items())[1]
        facts["predicted_over_measured"] = compared(facts, largest)
        print(f"predicted / measured {facts['predicted_over_measured']}")
    if options.json:
        print(json.dumps(facts, sort_keys=True))


if __name__ == "__main__":
    main()
