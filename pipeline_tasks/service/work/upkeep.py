"""Compacts, removes, retains and verifies what a root has."""

from pipeline_tasks.counted import counted
from pipeline_tasks.engines.choose import engine
from pipeline_tasks.engines.each import On
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.verify import verification
from pipeline_tasks.inspect.verify.verification import Scope, report_facts
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.service.requests.upkeep import (
    CompactReply,
    CompactRequest,
    Report,
    RetentionRequest,
    VacuumRequest,
    VerifyRequest,
)
from pipeline_tasks.upkeep import compact as compacting
from pipeline_tasks.upkeep import vacuum as orphaned
from pipeline_tasks.upkeep.retention.command import lines, retain

LISTED = 100
"""Problems that a failed verification lists."""


def compact(request: CompactRequest) -> CompactReply:
    """Merge the history of many snapshots."""
    merged = compacting.compact(request.root, engine(request.engine, request.address))
    return {"compacted": {manifest.fingerprint: list(manifest.parents) for manifest in merged}}


def vacuum(request: VacuumRequest) -> Report:
    """List or remove what no manifest names."""
    orphans = orphaned.find_orphans(request.root, request.grace, request.expire)
    if request.delete:
        orphaned.remove(request.root, orphans, request.limit)
    return {**orphaned.orphan_facts(orphans), "deleted": request.delete}


def retention(request: RetentionRequest) -> Report:
    """List or apply what a policy says of how long objects are kept."""
    plan, facts = retain(request.root, request.policy, is_applied=request.apply, by=request.run_id)
    return {**facts, "lines": list(lines(plan, is_applied=request.apply))}


def verify(request: VerifyRequest) -> Report:
    """Return the report; ContractError that lists the problems if there are any. A new root has nothing to verify."""
    if not version_log.recipes(request.root):
        return {"problems": [], "notes": [f"{request.root}: nothing has been published"]}
    report = verification.verify(request.root, Scope(full=request.full, on=On(request.engine, request.address)))
    problems = sorted(map(str, report.findings.problems))
    if problems:
        listed = "\n".join(problems[:LISTED])
        message = f"{request.root}: {counted(len(problems), 'problem')}, found by `refinery verify`:\n{listed}"
        raise ContractError(message)
    return report_facts(report)
