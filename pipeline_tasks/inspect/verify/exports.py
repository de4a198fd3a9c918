"""Finds the files of the exports of a version in its root, by the list of each."""

from collections.abc import Iterator

from pipeline_tasks.inspect.verify.findings import Findings
from pipeline_tasks.inspect.verify.objects import Expected
from pipeline_tasks.publish.exported import EXPORTS, FILES, files_of
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store import storage


def exported_files(root: str, version: Version, findings: Findings) -> Iterator[Expected]:
    """Yield the files of the exports that are complete, as their lists have them."""
    store = storage.connect(root)
    for entry in store.list(f"{version.prefix}/{EXPORTS}"):
        place, _, name = f"{root}/{entry.path}".rpartition("/")
        if name != FILES:
            continue
        heal = f"remove the folder {place} and build again, or register: the same files are written"
        with findings.guarded(f"{place}/{FILES}", heal):
            for file in files_of(place, store.read(entry.path))["files"]:
                path = f"{place}/{file['path']}"
                yield Expected(path, "exported files", (file["bytes"],), (file["sha256"],), heal)
