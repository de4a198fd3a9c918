"""A root with rights and evaluation items, and the questions over it that run on any engine."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from refinery_rights.opted_out import opted_out
from refinery_study.contamination import listed_hits, search

from pipeline_tasks.engines.each import HERE, On
from pipeline_tasks.landing.listing import land
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.wire import decode
from tests.documents import documents
from tests.inspect.test_contamination import publish
from tests.refining import refined
from tests.stages.test_check_rights import landed, page, robots
from tests.stages.test_decontaminate import PROSE, QUESTION

QUIZ, LATER = "quiz.jsonl", "later.jsonl"
"""Evaluation sets beside the root: one that was screened for, and a later one."""

RIVER = "Which river flows through the old town of Ljubljana today, and which ones join it further down?"

HOSTS = [f"https://{name}.example" for name in "abcd"]

RIGHTS: Mapping[str, Mapping[str, Any]] = {
    "ingest": {"rights": True},
    "check_rights": {"robots_txt": "reject", "noai": "reject"},
}


def build(folder: Path) -> str:
    """Refine a day with items of both sets, and two whose second opts pages of the first out; return the root."""
    root = folder / "root"
    for name, question in ((QUIZ, QUESTION), (LATER, RIVER)):
        (folder / name).write_text(json.dumps({"question": question}))
    texts = [[f"{PROSE}{item} {host}" for item in ("", QUESTION, RIVER)] for host in HOSTS]
    publish(root, [*map(documents, texts)], {"benchmarks": {"quiz": str(folder / QUIZ)}})
    first = [[page(f"{host}/{part}") for part in ("one", "two")] for host in HOSTS]
    reserved = [[page(f"{host}/one", headers="X-Robots-Tag: noai", date=LATER_DAY)] for host in HOSTS[:2]]
    closed = robots(HOSTS[3], "User-agent: GPTBot\nDisallow: /", date=LATER_DAY)
    for day, files in (("2026-11-20", first), ("2026-11-21", [*reserved, [closed]])):
        _publish_day(str(root), str(landed(folder / day, *files)), day)
    return str(root)


LATER_DAY = "2026-11-21T12:00:00Z"


def _publish_day(root: str, landing: str, day: str) -> None:
    path = land(root, landing, day)[0]
    manifests = {"land": path}
    for stage, params in RIGHTS.items():
        path, _ = refined(root, stage, path, params, landing=landing)
        manifests[stage] = path
    entry = {"recipe": "rights", "snapshot": day, "landing": landing, "manifests": manifests, "verdicts": {}}
    version_log.append(root, {**entry, "prefix": "", "documents": 1, "tokens": 0, "sequences": 0})


def _contamination(root: str, on: On) -> dict[str, Any]:
    quiz, later = (str(Path(root).parent / name) for name in (QUIZ, LATER))
    versions = version_log.latest_by_snapshot(root, "demo")
    listed = [hit for version in versions for hit in listed_hits(root, version, files={"quiz": quiz}, on=on)]
    added = [search(root, version, {"later": later}, {}, on=on) for version in versions]
    return {"listed": [*map(asdict, listed)], "added": [[asdict(scan), [*map(asdict, hits)]] for scan, hits in added]}


def _opted_out(root: str, on: On) -> dict[str, Any]:
    return {"opted_out": [asdict(each) for each in opted_out(root, on=on)]}


QUESTIONS: Mapping[str, Callable[[str, On], dict[str, Any]]] = {
    "contamination": _contamination,
    "opted_out": _opted_out,
}
"""Verbs over a whole root that are no requests, but what a command answers."""


def done(request: Mapping[str, Any], on: On = HERE) -> Any:
    """Do a verb over a whole root; return what it says."""
    if request["verb"] in QUESTIONS:
        return QUESTIONS[request["verb"]](request["root"], on)
    return handle(decode({**request, "engine": on.engine, "address": on.address}))
