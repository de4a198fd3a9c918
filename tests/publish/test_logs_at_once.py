"""Logs that several processes append to at once: none of them takes the entry of another for a log that was cut."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from refinery_rights.taking_down import take_down

from pipeline_tasks.inspect.verify.findings import Findings
from pipeline_tasks.inspect.verify.log import check_ablations, check_log, check_takedowns
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.ledger.lost_log import require_log, require_takedowns
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.ablation_log import (
    LOG,
    AblatedArm,
    Ablation,
    RateDifference,
    ablations,
    record_ablation,
)
from pipeline_tasks.publish.published import PublishedFile
from pipeline_tasks.sealed import sha256
from pipeline_tasks.store.log_chain import dataset_log
from pipeline_tasks.store.taken_down import takedowns

RECIPE = "daily"
ARM = AblatedArm("root/corpus@1", "corpus", 1, (RECIPE,), {}, "", "")
RATE = RateDifference(0.001, 0.0, -0.1, 0.1)
ABLATION = Ablation((ARM, ARM), "10m", 1, 1, "", (RATE,), "same", 0.1, 1.0, "1")


def publish(root: str, snapshot: str) -> None:
    """Append a version of no stage, and record it, as `publication.publish_snapshot` does."""
    report = Path(root, "publish", snapshot, "report-1.html")
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(snapshot)
    file = PublishedFile(f"publish/{snapshot}/report-1.html", len(snapshot), sha256(snapshot.encode()))
    names = {"recipe": RECIPE, "snapshot": snapshot, "landing": "", "manifests": {}, "verdicts": {}}
    sizes = dict.fromkeys(("documents", "tokens", "sequences", "superseded"), 0)
    fields = {**names, **sizes, "prefix": f"publish/{snapshot}", "tokenizer": "", "files": (file,)}
    version = version_log.append(root, fields)
    with Ledger.open(ledger_of(root)) as ledger:
        ledger.record_version(version)
        ledger.record_log(root, dataset_log(RECIPE))


def ablate(root: str, number: int) -> None:
    record_ablation(root, replace(ABLATION, tokens=number))
    with Ledger.open(ledger_of(root)) as ledger:
        ledger.record_ablations(root, ablations(root))
        ledger.record_log(root, LOG)


APPENDED: dict[str, Callable[[str, int], object]] = {
    "takedowns": lambda root, at: take_down(root, [("site", f"{at}.example")], "a letter"),
    "versions": lambda root, at: publish(root, f"2026-11-{at:02d}"),
    "ablations": ablate,
}
"""What appends an entry to each log, and records it."""


def verified(check: Callable[[str, Findings], object], root: str) -> None:
    findings = Findings()
    check(root, findings)
    assert findings.problems == []


READ: dict[str, list[Callable[[str], object]]] = {
    "takedowns": [require_takedowns, partial(verified, lambda root, found: check_takedowns(root, [], found))],
    "versions": [
        partial(require_log, recipe=RECIPE),
        partial(verified, lambda root, found: check_log(root, RECIPE, found)),
    ],
    "ablations": [partial(verified, check_ablations)],
}
"""Who compares each log with the ledger."""


@pytest.mark.parametrize(("log", "reader"), [(log, at) for log in READ for at in range(len(READ[log]))])
def test_an_entry_that_comes_while_a_log_is_read_is_no_sign_that_it_was_cut(
    log: str, reader: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, query, waiting = str(tmp_path), Ledger.query, [True]
    APPENDED[log](root, 1)

    def query_behind_another(ledger: Ledger, name: str, **named: Any) -> Any:
        if name == "logs" and waiting:
            waiting.clear()
            APPENDED[log](root, 2)
        return query(ledger, name, **named)

    monkeypatch.setattr(Ledger, "query", query_behind_another)
    READ[log][reader](root)
    assert waiting == []


@pytest.mark.parametrize("log", APPENDED)
def test_entries_of_several_processes_at_once_are_all_recorded(log: str, tmp_path: Path) -> None:
    root = str(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(partial(APPENDED[log], root), range(1, 9)))
    entries = {"takedowns": takedowns, "ablations": ablations, "versions": lambda at: version_log.log(at, RECIPE)}
    assert len(entries[log](root)) == 8  # type: ignore[operator] -- each returns a list
    for read in READ[log]:
        read(root)
