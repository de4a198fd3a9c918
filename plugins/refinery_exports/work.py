"""Exports what is published, for the tasks of a build."""

from pipeline_tasks.binding import require_known
from pipeline_tasks.engines.each import On
from pipeline_tasks.inspect.chosen import chosen_version
from pipeline_tasks.recipe import export_names
from pipeline_tasks.service.requests.publication import ExportReply, ExportRequest
from refinery_exports.described import Target
from refinery_exports.exporting import processes
from refinery_exports.versions import export_in_root


def export(request: ExportRequest) -> ExportReply:
    """Export a version of a training dataset in formats of other trainers."""
    require_known(request.exports, export_names(request.exports), "exports")
    version = chosen_version(request.root, request.recipe, str(request.version))
    on = On(request.engine, request.address, processes())
    shards = {
        name: len(export_in_root(request.root, version, Target(name, shard_bytes), on)["shards"])
        for name, shard_bytes in request.exports.items()
    }
    return {"shards": shards}
