"""Registers what is published, for the tasks of a run."""

from pipeline_tasks.engines.each import On
from pipeline_tasks.inspect.chosen import chosen_version
from pipeline_tasks.service.requests.publication import RegisterReply, RegisterRequest
from refinery_exports.exporting import processes
from refinery_exports.tables.catalogs import catalog_address, opened
from refinery_exports.tables.registering import plain_root, register_version

HAS = ("namespace", "name", "rows", "files")
"""What a reply says of a table: what it has, which is the same whoever of two that did it at once has done what."""


def register(request: RegisterRequest) -> RegisterReply:
    """Make a version a snapshot of the tables of its recipe."""
    root = plain_root(request.root)
    version = chosen_version(root, request.recipe, str(request.version))
    on = On(request.engine, request.address, processes())
    address = catalog_address(request.catalog)
    with opened(address) as catalog:
        done = register_version(root, version, catalog, on)
    return {"catalog": address, "tables": [{name: getattr(each, name) for name in HAS} for each in done]}
