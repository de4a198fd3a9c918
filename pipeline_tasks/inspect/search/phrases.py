"""Searches the published documents of all snapshots by a phrase of the text or by columns, up to so many bytes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.conditions import conditions_of
from pipeline_tasks.inspect.search import Bounds, Hit, search_texts
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.run.sizes import in_bytes
from pipeline_tasks.store.reading import read_manifest

LIMIT = 1000
"""Documents that are listed at most."""


@dataclass(frozen=True, slots=True)
class FoundText:
    """A published document that was looked for, and its snapshot."""

    recipe: str
    snapshot: str
    hit: Hit


@dataclass(frozen=True, slots=True)
class PhraseSearch:
    """Published documents that have a phrase and meet conditions, and what was read: the newest snapshots first.

    `documents` and `snapshots` are (searched, all), `read` the bytes of the texts or ids that were searched. `without`
    are snapshots whose documents lack a column of the conditions; they are none of `all`.
    """

    phrase: str
    found: tuple[FoundText, ...]
    documents: tuple[int, int]
    snapshots: tuple[int, int]
    read: int
    where: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every published document was searched."""
        return self.documents[0] == self.documents[1]


def search_phrase(
    root: str, recipe: str, phrase: str, *, most_bytes: int, most_hits: int = LIMIT, where: Sequence[str] = ()
) -> PhraseSearch:
    """Return the published documents whose text has a phrase: of a recipe, or of all ("").

    `where` are conditions on their columns, with which the phrase may be "". RecipeError for a phrase without a word,
    where no snapshot is published, and for a column that no snapshot has. `most_bytes` is 0 for no bound.
    """
    versions, without = _judged(root, _versions(root, recipe), where)
    found: list[FoundText] = []
    searched = snapshots = read = 0
    for version in versions:
        left = most_bytes - read
        if (most_bytes and left <= 0) or len(found) >= most_hits:
            break
        bounds = Bounds(0, most_hits - len(found), left if most_bytes else 0)
        search = search_texts(root, version, phrase, bounds, where=where, kept_only=True)
        found += [FoundText(version.recipe, version.snapshot, hit) for hit in search.hits]
        searched, read, snapshots = searched + search.end, read + search.read, snapshots + 1
    documents = sum(version.documents for version in versions)
    return PhraseSearch(
        phrase, tuple(found), (searched, documents), (snapshots, len(versions)), read, tuple(where), tuple(without)
    )


def _judged(root: str, versions: Sequence[Version], where: Sequence[str]) -> tuple[list[Version], list[str]]:
    """Return the versions whose documents have the columns of conditions, and the snapshots of the others.

    RecipeError if there is no such version, which names the columns of the newest.
    """
    if not where:
        return list(versions), []
    refusals: dict[str, RecipeError] = {}
    judged = []
    for version in versions:
        try:
            conditions_of(where, dict(read_manifest(root, version.refined).schema))
        except RecipeError as error:
            refusals[version.snapshot] = error
        else:
            judged.append(version)
    if not judged:
        raise next(iter(refusals.values()))
    return judged, list(refusals)


def _versions(root: str, recipe: str) -> list[Version]:
    """Return the newest version of each snapshot, the newest snapshots of each recipe first."""
    names = [recipe] if recipe else [name for name in version_log.recipes(root) if not version_log.is_build(root, name)]
    versions = [version for name in names for version in version_log.latest_by_snapshot(root, name)[::-1]]
    if not versions:
        message = f"{root}: no snapshot {f'of recipe {recipe} ' if recipe else ''}is published, so no text is searched"
        raise RecipeError(message)
    return versions


# --- Output ---------------------------------------------------------------------------------------------------------


def read_text(search: PhraseSearch) -> str:
    """Return what was read, for a person."""
    searched, documents = search.documents
    of_snapshots = f"{search.snapshots[0]:,} of {counted(search.snapshots[1], 'snapshot')}"
    of_texts = f"{in_bytes(search.read)} of {'texts' if search.phrase else 'ids'}"
    without = f"; without such a column: {', '.join(search.without)}" if search.without else ""
    return f"read {of_texts}: {searched:,} of {documents:,} published documents, {of_snapshots}{without}"


def looked_for(search: PhraseSearch) -> str:
    """Return what was looked for, for a person."""
    phrase = [f"with the phrase {search.phrase!r}"] if search.phrase else []
    return " ".join([*phrase, *([f"where {' and '.join(search.where)}"] if search.where else [])])


def phrase_facts(search: PhraseSearch) -> dict[str, Any]:
    """Return the search as plain JSON values, without texts."""
    found = [
        {"recipe": each.recipe, "snapshot": each.snapshot, "id": each.hit.id, "url": each.hit.url}
        for each in search.found
    ]
    names = ("phrase", "where", "documents", "snapshots", "read", "without")
    return {**{name: getattr(search, name) for name in names}, "found": found}


def phrase_lines(search: PhraseSearch) -> Iterator[str]:
    """Yield a line per document, and what was read."""
    for each in search.found:
        yield f"{each.recipe} {each.snapshot}  {each.hit.id}  {each.hit.url}".rstrip()
    yield f"{counted(len(search.found), 'document')} {looked_for(search)}; {read_text(search)}"
    if not search.is_whole:
        yield "the others were not searched; --most-bytes 0 reads all, and --recipe chooses"
