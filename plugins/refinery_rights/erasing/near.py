"""Offers the near duplicates of what is taken down: documents with other ids that say nearly the same."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline_tasks.cards import maker_of
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.document.duplicates import duplicates
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import is_trial
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.store.taken_down import taken_down
from refinery_rights.erasing.documents import IDENTITY, Documents


@dataclass(frozen=True, slots=True)
class Near:
    """A document that is in a cluster with one that is taken down (`of`); `became` is its outcome in deduplication.

    `similarity` is that to the document that it was compared with, None where whole texts or addresses were.
    """

    id: str
    url: str | None
    snapshot: str
    recipe: str
    became: str
    similarity: float | None
    of: str


def near(root: str) -> list[Near]:
    """Return the near duplicates of what is taken down now, by recipe, snapshot and id.

    They are those of the clusters that deduplication found. What it never compared, as the documents of two recipes, is
    not among them: `refinery look similar` compares vectors.
    """
    documents = Documents(taken_down(root))
    recipes = [
        name for name in version_log.recipes(root) if not is_trial(name) and not version_log.is_build(root, name)
    ]
    for recipe in recipes:
        for version in version_log.latest_by_snapshot(root, recipe):
            manifest = read_manifest(root, version.manifests.get(maker_of(version.manifests), version.refined))
            for batch in read_shards(root, manifest.shards, IDENTITY):
                documents.learn(batch)
    found = {(each.recipe, each.snapshot, each.id): each for name in recipes for each in _near(root, name, documents)}
    return [found[key] for key in sorted(found)]


def _near(root: str, recipe: str, documents: Documents) -> Iterator[Near]:
    for id_ in documents.ids:
        try:
            members = duplicates(root, recipe, id_).members
        except RecipeError:  # this recipe has no such document
            continue
        for member in members:
            if member.id not in documents.ids:
                facts = (member.id, member.url, member.snapshot, recipe, member.became, member.similarity)
                yield Near(*facts, of=id_)


def near_lines(found: list[Near]) -> Iterator[str]:
    """Yield a line per near duplicate, and how to take them down."""
    yield from found_lines(found)
    if found:
        named = " ".join(f"--document {id_}" for id_ in sorted({each.id for each in found}))
        yield f"take down those that are meant, too: refinery takedown {named} --reason ..., or all with --also-near"


def found_lines(found: list[Near]) -> Iterator[str]:
    """Yield a line per near duplicate."""
    for each in found:
        alike = f"{each.similarity:.2f} like what it was compared with, " if each.similarity is not None else ""
        yield f"{each.id}  {alike}{each.became}, snapshot {each.snapshot} of {each.recipe}, {each.url or 'no URL'}"
    if not found:
        yield "deduplication found no near duplicate of what is taken down"
