"""Where the minutes of the tests are.

`pytest --record-durations=FILE` writes what each test took; `make test` writes `.refinery/durations.json`.
`python -m tests.durations [FILE]` prints that as tables; with `--refresh` it also writes `tests/durations.json`, by
which `tests.order` starts the slowest files first and `make quick` leaves out the slowest tests.
"""

import argparse
import json
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Any

import pytest

from tests.order import DURATIONS, LONG, Durations, file_of

PROJECT = Path(__file__).parents[1]
RECORDED = PROJECT / ".refinery" / "durations.json"
SLOWEST = 20
WHOLE_RUN = re.compile(r"(?:\brefinery|pipeline_tasks\.cli(?:\.main)?) (?:run|build|demo)\b")


@dataclass(slots=True)
class Traces:
    """What is seen of a test while it runs."""

    file: str
    names: set[str]
    """Fixtures, strings among the parameters, and marks."""

    commands: list[str] = field(default_factory=list)
    """The processes that it has started."""


KINDS: dict[str, Callable[[Traces], object]] = {
    "Airflow server": lambda seen: seen.file.startswith("tests/server/"),
    "whole `refinery run`": lambda seen: "refinery" in seen.names or any(map(WHOLE_RUN.search, seen.commands)),
    "Spark": lambda seen: "spark" in seen.names,
    "Ray": lambda seen: "ray" in seen.names,
    "S3 server": lambda seen: not seen.names.isdisjoint({"s3_server", "s3_root", "s3"}),
    "Hypothesis": lambda seen: "hypothesis" in seen.names,
    "kernels": lambda seen: seen.file.startswith(("tests/text/", "tests/filters/")),
    "other processes": lambda seen: seen.commands,
}
"""A test is of the first kind that fits."""

REST = "the rest"


def kind_of(seen: Traces) -> str:
    """Return the kind of a test."""
    return next((kind for kind, fits in KINDS.items() if fits(seen)), REST)


# --- Recording --------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Name the file of durations."""
    parser.addoption("--record-durations", metavar="FILE", type=Path, help="write what each test took, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Watch in the processes that run tests; write in the one that was started."""
    if (file := config.getoption("--record-durations")) is None:
        return
    config.pluginmanager.register(Watch())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Record(config.invocation_params.dir / file))


class Watch:
    """Says of what kind each test is, in the `user_properties` of its reports."""

    def __init__(self) -> None:
        self.seen: Traces | None = None
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and self.seen is not None:
            words = arguments[1]
            whole = words if isinstance(words, str | bytes | PurePath) else b" ".join(map(os.fsencode, words))
            self.seen.commands.append(os.fsdecode(whole))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Watch one test."""
        call = getattr(item, "callspec", None)
        params = {value for value in call.params.values() if isinstance(value, str)} if call else set()
        marks = {mark.name for mark in item.iter_markers()}
        self.seen = Traces(item.nodeid, {*getattr(item, "fixturenames", ()), *params, *marks})
        return (yield)

    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        """See a fixture that a test asks for as it runs."""
        if self.seen is not None:
            self.seen.names.add(fixturedef.argname)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Say the kind when the test is over."""
        if call.when == "teardown" and self.seen is not None:
            item.user_properties.append(("kind", kind_of(self.seen)))


class Record:
    """Collects the durations of all processes, and writes them at the end."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.seconds: Counter[str] = Counter()
        self.kinds: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test."""
        self.seconds[report.nodeid] += report.duration
        if report.when == "teardown":
            self.kinds[report.nodeid] = str(dict(report.user_properties)["kind"])

    def pytest_sessionfinish(self) -> None:
        """Write what was seen, slowest first."""
        rows = [
            {"test": name, "seconds": round(seconds, 3), "kind": self.kinds.get(name, REST)}
            for name, seconds in self.seconds.most_common()
        ]
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


# --- Reading ----------------------------------------------------------------------------------------------------------


def seconds_by(rows: Iterable[Mapping[str, Any]], key: Callable[[Mapping[str, Any]], str]) -> dict[str, float]:
    """Return the seconds of the tests with one key, slowest first."""
    summed: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        summed[key(row)] += row["seconds"]
    return dict(sorted(summed.items(), key=lambda item: (-item[1], item[0])))


def durations(rows: Iterable[Mapping[str, Any]]) -> Durations:
    """Return what `tests.order` reads."""
    files = {file: round(seconds) for file, seconds in seconds_by(rows, lambda row: file_of(row["test"])).items()}
    return Durations(files, {row["test"]: round(row["seconds"], 1) for row in rows if row["seconds"] >= LONG})


def folder_of(row: Mapping[str, Any]) -> str:
    """Return the folder of a test below `tests`, or `tests` of a file in that itself."""
    return "/".join(PurePath(file_of(row["test"])).parts[:-1][:2])


def tables(rows: list[dict[str, Any]]) -> str:
    """Return what is printed: Markdown."""
    whole = sum(row["seconds"] for row in rows)
    parts = [f"{len(rows):,} tests, {whole / 60:.1f} minutes over all processes"]
    for title, key in (("folder", folder_of), ("kind", lambda row: str(row["kind"]))):
        counts = Counter(map(key, rows))
        parts.append(f"\n| {title} | minutes | tests |\n|---|---:|---:|")
        parts += [f"| {name} | {s / 60:.1f} | {counts[name]:,} |" for name, s in seconds_by(rows, key).items()]
    parts.append("\n| test | seconds |\n|---|---:|")
    slowest = sorted(rows, key=lambda row: (-row["seconds"], row["test"]))[:SLOWEST]
    parts += [f"| `{row['test'].replace('|', '&#124;')}` | {row['seconds']:.0f} |" for row in slowest]
    return "\n".join(parts)


def main() -> None:
    """Print the tables; refresh the durations by file where that is asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.durations", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=RECORDED)
    parser.add_argument("--refresh", action="store_true", help="write tests/durations.json")
    options = parser.parse_args()
    rows = json.loads(options.file.read_text())
    print(tables(rows))
    if options.refresh:
        DURATIONS.write_text(json.dumps(asdict(durations(rows)), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
