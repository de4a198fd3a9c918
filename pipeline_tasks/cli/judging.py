"""Judges what a command has refined by the gate of its stage."""

from pipeline_tasks.errors import GateRefused
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.gates import JudgeRequest


def judged(request: JudgeRequest) -> str:
    """Return the reference of the verdict; GateRefused, with the bounds that were broken, if the gate refuses."""
    verdict = handle(request)
    path: str = verdict["verdict"]
    if verdict["outcome"] != "refuse":
        return path
    stage = request.manifest.partition("/")[0]
    way_out = f"Look at {verdict['docs']} in {request.root}. If it is right, run again with --override {stage}=WHY"
    raise GateRefused("\n".join([f"the gate of {stage} refuses {request.recipe}", *verdict["lines"], way_out]))
