"""Which types of files there are, and which one the bytes of a record are: labels decide only where these are text.

The core reads `html` and `text`; other types are brought through the seam `refinery.types`: each part is a dict of
names and their `FileType`. Imports the vocabulary and `text`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.nearest import nearest
from pipeline_tasks.seams import brought_entries

SEAM = "refinery.types"

HTML, TEXT = "html", "text"
OWN = (HTML, TEXT)
"""The types that the core reads itself."""


@dataclass(frozen=True, slots=True)
class FileType:
    """The card of a type of file.

    `read` is the place of its reader (`text.page.file_text.Reader`), `module:NAME`, which a sandbox imports. `begins`
    is a regular expression (RE2, `.` is any byte) that bytes of the type begin with, "" if none tells it; `holds` is
    the place of a function that looks closer at such bytes and returns whether they are of the type: it runs outside of
    sandboxes, so it is cheap and safe. `holds_plain` looks in its place at bytes that their label calls plain text,
    which may quote what files of the type begin with. `media_types` are labels that tell bytes that are text, where
    `begins` does not.
    Landed files whose names end in one of `endings`, in small letters and without a point, are documents of the type.
    The versions of `libraries`, by the names of their distributions, decide its texts: they are identity. `image` is
    the place of what draws one of its pages for people (`text.page.file_text.Drawer`), "" for a type that has no look.
    """

    name: str
    title: str
    read: str
    begins: str = ""
    holds: str = ""
    media_types: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    image: str = ""
    holds_plain: str = ""


@cache
def brought_types() -> Mapping[str, FileType]:
    """Return the types that extensions and other distributions bring, by name; ours come first.

    The distribution of somebody else is one of the libraries of its types.
    """
    return {
        name: replace(card, name=name, libraries=(*card.libraries, *filter(None, [part.distribution])))
        for name, (card, part) in brought_entries(SEAM, OWN, FileType).items()
    }


def type_names() -> tuple[str, ...]:
    """Return the names of all types."""
    return (*OWN, *brought_types())


def require_types(names: Iterable[str], where: str) -> None:
    """Raise RecipeError, which begins with `where`, for a type that is not known here."""
    for name in names:
        if name not in type_names():
            known = ", ".join(type_names())
            message = f"{where}: no type of file is called {name!r}{nearest(name, type_names())}; known: {known}"
            raise RecipeError(message)


def libraries() -> dict[str, frozenset[str]]:
    """Return the libraries that decide texts of files, each with the types that are read by it."""
    users: dict[str, set[str]] = {}
    for card in brought_types().values():
        for library in card.libraries:
            users.setdefault(library, set()).add(card.name)
    return {library: frozenset(names) for library, names in users.items()}
