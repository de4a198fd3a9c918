"""Handles requests: what the worker daemon, the command line, the plugins and `python -m pipeline_tasks` call.

A request and its reply are JSON. `handle` answers these verbs:

land     list a landed snapshot and commit its manifest
history  name what earlier snapshots of a recipe left for this one
spans    cut a stage's input into at most n partitions of about equal bytes
refine   run a stage over its input, or over one span of it
seal     concatenate a stage's partitions into its manifest
judge    let the stage's gate read a manifest
publish  make a dataset version of a snapshot's manifests
tend     sweep what no manifest names, and compact what snapshots remembered
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.gate import verdicts
from pipeline_tasks.landing import listing
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.ledger import Ledger, ledger_of
from pipeline_tasks.publish.publishing import publish
from pipeline_tasks.run.runner import Budget, EngineFactory, Meter, Work, refine, seal
from pipeline_tasks.stage import Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.upkeep import vacuum
from pipeline_tasks.upkeep.compact import compact

Request = Mapping[str, Any]
Reply = dict[str, Any]


def handle(request: Request) -> Reply:
    """Answer a request; RefineryError if it cannot be answered."""
    verb = str(request.get("verb"))
    if verb not in VERBS:
        message = f"unknown verb {verb!r}; a request's verb is one of {', '.join(VERBS)}"
        raise RecipeError(message)
    answer, needs = VERBS[verb]
    lacking = [name for name in needs if name not in request]
    if lacking:
        message = f"the request to {verb} lacks {', '.join(lacking)}; it has {', '.join(request)}"
        raise RecipeError(message)
    return answer(request)


def _land(request: Request) -> Reply:
    path, made, landed = listing.land(request["root"], request["input"], str(request.get("snapshot") or ""))
    version_log.refuse_retracted(request["root"], str(request.get("recipe") or ""), landed.snapshot, path)
    return {
        "manifest": path,
        "snapshot": landed.snapshot,
        "landing": listing.landing_of(request["input"]),
        "files": len(made.shards),
        "bytes": made.bytes,
        "ignored": list(landed.ignored),
    }


def _history(request: Request) -> Reply:
    earlier = version_log.earlier(request["root"], request["recipe"], request["snapshot"])
    remembered: dict[str, list[str]] = {}
    for version in earlier:
        for stage, path in version.manifests.items():
            if read_manifest(request["root"], path).history:
                remembered.setdefault(stage, []).append(path)
    previous = dict(earlier[-1].manifests) if earlier else {}
    return {"history": remembered, "previous": previous}


def _spans(request: Request) -> Reply:
    parent = read_manifest(request["root"], request["parent"])
    cut = spans(parent.shards, int(request["partitions"]))
    return {"spans": [list(span) for span in cut], "names": [_span_name(parent, span) for span in cut]}


def spans(shards: Shards, partitions: int) -> list[tuple[int, int]]:
    """Cut shards into at most `partitions` runs [start, stop) of about equal bytes, none empty."""
    wanted = max(1, min(partitions, len(shards)))
    total = sum(shard.bytes for shard in shards) or 1
    cut: list[tuple[int, int]] = []
    start, spent = 0, 0
    for rank, shard in enumerate(shards):
        spent += shard.bytes
        left = len(shards) - rank - 1
        due = spent * wanted >= total * (len(cut) + 1)
        if (due or left < wanted - len(cut)) and len(cut) < wanted - 1:
            cut.append((start, rank + 1))
            start = rank + 1
    return [*cut, (start, len(shards))] if start < len(shards) or not cut else cut


def _span_name(parent: Manifest, span: tuple[int, int]) -> str:
    first, last = parent.shards[span[0]], parent.shards[span[1] - 1]
    if first.path.startswith("landing:"):
        names = [one.path.removeprefix("landing:").rpartition("/")[2] for one in (first, last)]
        return names[0] if first == last else f"{names[0]} .. {names[1]}"
    return f"shards {span[0] + 1}-{span[1]} of {len(parent.shards)}"


def _work(request: Request) -> Work:
    return Work(
        root=request["root"],
        stage=request["stage"],
        params=request.get("params") or {},
        parent=request["parent"],
        history=tuple(request.get("history") or ()),
        landing=str(request.get("landing") or ""),
        budget=Budget(**(request.get("budget") or {})),
    )


def _engine(request: Request) -> EngineFactory:
    return engine(str(request.get("engine") or "local"), str(request.get("address") or ""))


def _refine(request: Request) -> Reply:
    span = request.get("span")
    path, made, meter = refine(_work(request), _engine(request), (int(span[0]), int(span[1])) if span else None)
    if not span:
        _record(request, path, made, meter)
    return _told(path, made, meter)


def _seal(request: Request) -> Reply:
    cut: Sequence[Sequence[int]] = request["spans"]
    path, made = seal(_work(request), [(int(start), int(stop)) for start, stop in cut])
    meter = Meter(float(request.get("wall") or 0.0), float(request.get("cpu") or 0.0))
    _record(request, path, made, meter)
    return _told(path, made, meter)


def _told(path: str, made: Manifest, meter: Meter) -> Reply:
    return {
        "manifest": path,
        "rows_in": made.rows_in,
        "rows": made.rows,
        "rejected": dict(made.rejected),
        "quarantined": dict(made.quarantined),
        "bytes": made.bytes,
        "ran": meter.ran,
        "found": meter.found,
        "recalled": dict(meter.recalled),
        "wall": round(meter.wall, 3),
        "cpu": round(meter.cpu, 3),
    }


def _record(request: Request, path: str, made: Manifest, meter: Meter) -> None:
    with Ledger.open(ledger_of(request["root"])) as ledger:
        ledger.record_stage(
            path,
            made,
            wall=meter.wall,
            cpu=meter.cpu,
            snapshot=str(request.get("snapshot") or ""),
            recipe=str(request.get("recipe") or ""),
            engine=str(request.get("engine") or "local"),
        )


def _judge(request: Request) -> Reply:
    verdict = verdicts.judge(
        request["root"],
        request["manifest"],
        str(request.get("previous") or ""),
        request.get("bounds") or {},
        str(request.get("override") or ""),
    )
    with Ledger.open(ledger_of(request["root"])) as ledger:
        ledger.record_verdict(
            verdict, snapshot=str(request.get("snapshot") or ""), recipe=str(request.get("recipe") or "")
        )
    return {
        "outcome": verdict.outcome,
        "failures": [asdict(one) for one in verdict.failures],
        "verdict": verdict.path,
        "docs": verdict.docs,
    }


def _publish(request: Request) -> Reply:
    with Ledger.open(ledger_of(request["root"])) as ledger:
        return publish(
            request["root"],
            recipe=request["recipe"],
            snapshot=request["snapshot"],
            landing=str(request.get("landing") or ""),
            manifests=request["manifests"],
            verdicts=request.get("verdicts") or {},
            ledger=ledger,
        )


def _tend(request: Request) -> Reply:
    root = request["root"]
    made = compact(root, _engine(request)) if request.get("compact") else []
    found = vacuum.find_orphans(root, float(request.get("grace") or vacuum.GRACE), float(request.get("expire") or 0.0))
    if request.get("delete"):
        vacuum.remove(root, found, float(request.get("limit") or vacuum.LIMIT))
    compacted = {one.fingerprint: list(one.parents) for one in made}
    return {**vacuum.orphan_facts(found), "deleted": bool(request.get("delete")), "compacted": compacted}


VERBS: Mapping[str, tuple[Callable[[Request], Reply], tuple[str, ...]]] = {
    "land": (_land, ("root", "input")),
    "history": (_history, ("root", "recipe", "snapshot")),
    "spans": (_spans, ("root", "parent", "partitions")),
    "refine": (_refine, ("root", "stage", "parent")),
    "seal": (_seal, ("root", "stage", "parent", "spans")),
    "judge": (_judge, ("root", "manifest")),
    "publish": (_publish, ("root", "recipe", "snapshot", "manifests")),
    "tend": (_tend, ("root",)),
}
"""What answers a verb, and the keys that its request cannot lack."""


def main(arguments: Sequence[str]) -> int:
    """Read a request from a file or URI, answer it, store the reply where it asks, and return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m pipeline_tasks request.json\n")
        return RecipeError.exit_code
    request: Request = {}
    try:
        request = _read_request(arguments[0])
        reply: Reply = handle(request)
        code = 0
    except RefineryError as error:
        reply, code = {"error": type(error).__name__, "message": str(error), "exit": error.exit_code}, error.exit_code
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    if request.get("reply"):
        folder, _, name = str(request["reply"]).rpartition("/")
        storage.commit(storage.connect(folder), name, json.dumps(reply, sort_keys=True).encode())
    else:
        sys.stdout.write(json.dumps(reply, sort_keys=True) + "\n")
    return code


def _read_request(uri: str) -> Request:
    folder, slash, name = uri.rpartition("/")
    try:
        request = json.loads(storage.connect(folder or slash or ".").read(name))
    except FileNotFoundError as error:
        message = f"{uri}: no such request; give the path or URI of a JSON file"
        raise RecipeError(message) from error
    except ValueError as error:
        message = f"{uri} is not JSON ({error}); a request is one JSON object"
        raise RecipeError(message) from error
    if not isinstance(request, dict):
        message = f"{uri} is not a JSON object; a request is an object with a verb"
        raise RecipeError(message)
    return request
