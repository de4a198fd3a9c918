"""Decides what becomes of a partition that failed its last try: refined alone, quarantined, or failed.

A partition is poison if its own work ends the process: an error that is no refusal, or a worker that dies. Before that
is believed the partition is refined once more, alone and in a process of its own on this machine, as one that kills its
worker takes the partitions beside it along. On a cluster each try is a job of its own, and more than one has to fail.
What a machine did to the work (`run.machine`) says nothing of the rows.
"""

import builtins

from pipeline_tasks.errors import ClusterUnreachable, JobLost, KernelFailed, RefineryError, Transient
from pipeline_tasks.flow.attempt import Part, Send
from pipeline_tasks.flow.lines import log
from pipeline_tasks.run.request import RefineReply, RefineRequest
from pipeline_tasks.service.alone import Died, refine_alone
from pipeline_tasks.service.requests.stages import QuarantineRequest

OF_MACHINE = {name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, OSError)}
"""Errors of a file, a disk or a connection, also of libraries: the machine causes them, and not the data."""


def is_one_of_many(part: Part) -> bool:
    """Return whether something of a stage is left without a part."""
    return part["span"] is not None and part["of"] > 1


def without_poison(request: RefineRequest, part: Part, error: Exception, send: Send, tries: int = 0) -> RefineReply:
    """Return the reply of a part that was refined alone, or of its quarantine; raise `error` if it is no poison.

    `tries` are those that a cluster made, 0 for this machine. The reply of a quarantine has `poison`: the partition's
    name, and the kind of its error.
    """
    if not _is_of_work(error, is_on_cluster=tries > 0):
        raise error
    kind = _kind_of(error)
    if tries:  # its tries were on other workers, each a job of its own
        if tries == 1:
            raise error
    else:
        log.warning("%s  failed its last try (%s); it is refined once more, alone", request.stage, kind)
        try:
            return refine_alone(request)
        except Died as death:
            log.warning("%s  alone it ends by %s", request.stage, death)
            kind = death.kind
        except Transient as fault:
            raise error from fault
    if kind in OF_MACHINE:
        raise error
    log.warning(
        "%s  %s failed every try and is quarantined: the snapshot is partial (%s). Mend what its error names, then run "
        "it again (in Airflow: clear this task): the partition is refined, and the snapshot published anew",
        request.stage,
        part["name"],
        kind,
    )
    return {**send(QuarantineRequest(request)), "poison": [{"name": part["name"], "error": kind}]}


def _is_of_work(error: Exception, *, is_on_cluster: bool) -> bool:
    """Return whether an error can be of the partition's own work.

    A driver on a cluster that is lost is not: machines and networks end it, too, and with it all partitions. Nor is a
    cluster that is not reached: no partition has run.
    """
    if isinstance(error, ClusterUnreachable):
        return False
    if isinstance(error, JobLost):
        return not is_on_cluster
    return isinstance(error, KernelFailed) or not isinstance(error, RefineryError)


def _kind_of(error: Exception) -> str:
    """Return the name of an error's class; of a defect elsewhere, which comes as text, the name before the colon."""
    name, colon, _ = str(error).partition(":")
    is_named = type(error) is RuntimeError and colon and name.isidentifier()
    return name if is_named else type(error).__name__
