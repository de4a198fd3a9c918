"""Publishes a version."""

from pipeline_tasks.inspect.versions.late_files import late_files, late_line
from pipeline_tasks.inspect.versions.staleness import stale_now
from pipeline_tasks.publish import publishing
from pipeline_tasks.publish.datasets.building import publish_build
from pipeline_tasks.publish.datasets.origin import INDEX
from pipeline_tasks.publish.ledger import Ledger, ledger_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.lost_log import require_takedowns
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.service.requests.publication import (
    PublishReply,
    PublishRequest,
)


def publish(request: PublishRequest) -> PublishReply:
    """Publish a version of a snapshot or of a build; what is published already is found."""
    require_takedowns(request.root)
    with Ledger.open(ledger_of(request.root)) as ledger:
        if COMPOSE in request.manifests:
            return _build_reply(
                publish_build(request.root, request.recipe, request.manifests, request.verdicts, ledger)
            )
        version = publishing.publish(
            request.root,
            recipe=request.recipe,
            snapshot=request.snapshot,
            landing=request.landing,
            manifests=request.manifests,
            verdicts=request.verdicts,
            ledger=ledger,
        )
    stale = [version.version.snapshot for version in stale_now(request.root, request.recipe)]
    latest = version_log.latest_by_snapshot(request.root, request.recipe)
    late = late_files(request.root, [version for version in latest if version.snapshot == request.snapshot])
    after = [snapshot for snapshot in stale if snapshot >= request.snapshot]
    return {
        "version": version.number,
        "dataset": version_log.version_path(version.recipe, version.number),
        "prefix": version.prefix,
        "documents": version.documents,
        "superseded": version.superseded,
        "report": version.report,
        "late": "".join(map(late_line, late.values())),
        "stale": after,
    }


def _build_reply(version: version_log.Version) -> PublishReply:
    return {
        "version": version.number,
        "dataset": version_log.version_path(version.recipe, version.number),
        "index": f"{version.prefix}/{INDEX}",
        "prefix": version.prefix,
        "documents": version.documents,
        "tokens": version.tokens,
        "sequences": version.sequences,
    }
