"""Names the packages that a root was refined with and that are not here: names of their parts read as typing errors."""

from pipeline_tasks.errors import RefineryError
from pipeline_tasks.libraries import present
from pipeline_tasks.nearest import OR_INSTALL
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.storage import absolute


def absent_parts(root: str, message: str) -> str:
    """Return, of the refusal of a name that a package may bring, which packages of a root are not here; "" for none."""
    if not root or OR_INSTALL not in message:
        return ""
    try:
        absent = sorted(_absent(absolute(root)).items())
    except RefineryError:  # there is no root yet, or it cannot be read: the refusal stands alone
        return ""
    named = ", ".join(f"{name} {version}" for name, version in absent)
    return f". {root} was refined with {named}, not installed here: install what is missing" if named else ""


def _absent(root: str) -> dict[str, str]:
    """Return the libraries of the newest version of each recipe of a root that are not installed here."""
    needed: dict[str, str] = {}
    for recipe in version_log.recipes(root):
        for version in version_log.latest_by_snapshot(root, recipe)[-1:]:
            for referred in version.manifests.values():
                needed |= read_manifest(root, referred).libraries
    return {name: version for name, version in needed.items() if name not in present(needed)}
