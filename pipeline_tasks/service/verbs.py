"""Says which requests there are: each verb with the type of its request, and the work that answers it."""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from pipeline_tasks import seams
from pipeline_tasks.run.request import RefineRequest, Request
from pipeline_tasks.service.requests.gates import JudgeRecipeRequest, JudgeRequest, JudgeSnapshotRequest
from pipeline_tasks.service.requests.publication import PublishRequest
from pipeline_tasks.service.requests.stages import (
    ComposeRequest,
    HistoryRequest,
    LandRequest,
    PreflightRequest,
    QuarantineRequest,
    RecordRequest,
    SealRequest,
    SpansRequest,
)
from pipeline_tasks.service.requests.upkeep import CompactRequest, RetentionRequest, VacuumRequest, VerifyRequest

SEAM = "refinery.requests"
"""The seam of requests: each of its parts is a dict of verbs and their `Verb`, in a module that imports little."""


class Verb(NamedTuple):
    """The type of a verb's request, and the place `module:NAME` of its work: a function of it that returns its reply.

    The verb is that of the request's type. The work is imported when it is first done.
    """

    request: type[Request[Any]]
    work: str

    def load_work(self) -> Callable[[Any], Any]:
        """Import the work."""
        return seams.Part(self.request.verb, self.work).load()


_STAGES, _GATES, _PUBLICATION, _UPKEEP = (
    f"pipeline_tasks.service.work.{name}" for name in ("stages", "gates", "publication", "upkeep")
)

VERBS: Mapping[str, Verb] = {
    "preflight": Verb(PreflightRequest, f"{_STAGES}:preflight"),
    "land": Verb(LandRequest, f"{_STAGES}:land"),
    "compose": Verb(ComposeRequest, f"{_STAGES}:compose"),
    "history": Verb(HistoryRequest, f"{_STAGES}:history"),
    "spans": Verb(SpansRequest, f"{_STAGES}:spans"),
    "refine": Verb(RefineRequest, f"{_STAGES}:refine"),
    "seal": Verb(SealRequest, f"{_STAGES}:seal"),
    "quarantine": Verb(QuarantineRequest, f"{_STAGES}:quarantine"),
    "record": Verb(RecordRequest, f"{_STAGES}:record"),
    "judge": Verb(JudgeRequest, f"{_GATES}:judge"),
    "judge_snapshot": Verb(JudgeSnapshotRequest, f"{_GATES}:judge_snapshot"),
    "judge_recipe": Verb(JudgeRecipeRequest, f"{_GATES}:judge_recipe"),
    "publish": Verb(PublishRequest, f"{_PUBLICATION}:publish"),
    "compact": Verb(CompactRequest, f"{_UPKEEP}:compact"),
    "vacuum": Verb(VacuumRequest, f"{_UPKEEP}:vacuum"),
    "retention": Verb(RetentionRequest, f"{_UPKEEP}:retention"),
    "verify": Verb(VerifyRequest, f"{_UPKEEP}:verify"),
}
"""The verbs that the core answers."""


def verb_of(name: str) -> Verb | None:
    """Return a verb, None if there is none; only for a name that is not the core's, seams are read."""
    return VERBS.get(name) or verbs().get(name)


@cache
def verbs() -> Mapping[str, Verb]:
    """Return every verb by name: the core's, those of our extensions, and of other packages."""
    return MappingProxyType(seams.entries(SEAM, VERBS, Verb))
