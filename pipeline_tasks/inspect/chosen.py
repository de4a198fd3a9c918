"""Chooses a version that a person names by its number or its snapshot, and reads its manifests in their order."""

from collections.abc import Mapping

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.unpublished import current_version
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.nearest import nearest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import NAMED, Version
from pipeline_tasks.recipe import MOST_NAME
from pipeline_tasks.store.reading import read_in_order


def chosen_version(root: str, recipe: str, name: str) -> Version:
    """Return the version of this number, else the newest version of the snapshot of this name.

    A number chooses a version that is superseded or retracted, too. RecipeError if there is neither.
    """
    published = {version.number: version for version in version_log.versions(root, recipe)}
    if name.isascii() and name.isdigit() and int(name) in published:
        return published[int(name)]
    if not published:
        return current_version(root, recipe)  # it raises: a name is no snapshot of what has published nothing
    if name in {version.snapshot for version in published.values()}:
        return current_version(root, recipe, name)
    newest = [f"{number} ({version.snapshot})" for number, version in published.items()][-NAMED:]
    meant = nearest(name, {version.snapshot for version in published.values()})
    message = (
        f"{root}: recipe {recipe} has no version or snapshot {name[:MOST_NAME]!r}{meant}; the newest are "
        f"{', '.join(newest)}, and `refinery look versions {root}` lists all"
    )
    raise RecipeError(message)


def named_version(root: str, recipe: str, name: str) -> Version:
    """As `chosen_version`; the name `RECIPE:NAME` is that of a version of another recipe."""
    other, colon, own = name.partition(":")
    if colon and other in version_log.recipes(root):
        return chosen_version(root, other, own)
    return chosen_version(root, recipe, name)


def ordered_manifests(root: str, version: Version) -> dict[str, Manifest]:
    """Return the manifests of a version by stage, each after the one that it was made of, whatever the stages are."""
    return read_in_order(root, version.manifests)


def document_manifest(manifests: Mapping[str, Manifest]) -> Manifest | None:
    """Return the last of ordered manifests whose rows are documents; None if there is none."""
    documents = [manifest for manifest in manifests.values() if "id" in dict(manifest.schema)]
    return documents[-1] if documents else None
