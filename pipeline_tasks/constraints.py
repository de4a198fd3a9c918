"""Constraints: what a number or a word may be, beside its type; params declare them and `binding` checks them.

A param is annotated with one of the types here, or with `Annotated[int, Range(...)]` of its own.
"""

import math
import re
import sys
from dataclasses import dataclass
from typing import Annotated

from pipeline_tasks.seams import parts

OMITTED = "omitted"
"""Key of a field's metadata: the value with which committed JSON leaves the field out."""

LARGEST = sys.float_info.max
"""The largest finite number."""

MOST_ROWS = 2**31 - 1
"""Arrow's own bound on what one array indexes."""


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `least` to `most`, both included; without `least` itself if `above`. NaN is in no range."""

    least: float = 0
    most: float = LARGEST
    above: bool = False

    def admits(self, value: object) -> bool:
        """Return whether `value` is a number of the range."""
        if not isinstance(value, int | float):
            return False
        return (self.least < value if self.above else self.least <= value) and value <= self.most

    def __str__(self) -> str:
        """Return the range in words."""
        start = f"{'above ' if self.above else 'from '}{_digits(self.least)}"
        if self.most == math.inf:
            return f"{start} (.inf: no bound)"
        return start if self.most == LARGEST else f"{start} to {_digits(self.most)}"


def _digits(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


@dataclass(frozen=True, slots=True)
class Word:
    """Texts that match `pattern` as a whole; `words` says which those are."""

    pattern: str
    words: str

    def admits(self, value: object) -> bool:
        """Return whether `value` is such a text."""
        return isinstance(value, str) and re.fullmatch(self.pattern, value) is not None

    def __str__(self) -> str:
        """Return what the texts are, in words."""
        return self.words


@dataclass(frozen=True, slots=True)
class Place:
    """Marks texts that say where something is: who may start a run may name only places that the operator names.

    With `or_name` a plain word is the name of something that was installed, and no place.
    """

    or_name: bool = False

    def names(self, text: str) -> bool:
        """Return whether a text is a place."""
        return bool(text) and not (self.or_name and re.fullmatch(r"[\w-]+", text))


PLACE = Place()

Ratio = Annotated[float, Range(0, 1)]
"""A part of a whole."""

Share = Annotated[float, Range(0, 1, above=True)]
"""A part of a whole that is not empty."""

Limit = Annotated[float, Range(0, math.inf)]
"""A bound of a filter on a count or a length; `.inf` turns a maximum off."""

LimitOrOff = Annotated[float, Range(-1, math.inf)]
"""As `Limit`; -1 turns it off, as in the source of the filter."""

Switch = Ratio | bool
"""Off (0 or false), or on (1 or true)."""

Weight = Annotated[float, Range(0)]
"""A finite number of at least 0."""

Count = Annotated[int, Range(0, MOST_ROWS)]
"""A number of things; 0 is possible."""

Positive = Annotated[int, Range(1, MOST_ROWS)]
"""A number of things; there is at least one."""

MOST_BUCKETS = 65_536
"""Each bucket is a file, and a task."""

Buckets = Annotated[int, Range(0, MOST_BUCKETS)]
"""A number of shards; 0: as many as the bytes of the input ask for."""

Bytes = Annotated[int, Range(1, 1 << 50)]
"""A size, of at most a pebibyte."""

Seed = Annotated[int, Range(0, 2**63 - 1)]
"""A seed of hashes."""

S3, GOOGLE, AZURE = "s3://", "gs://", "az://"
"""How URIs begin that are in a bucket: of S3, of Google Cloud Storage, and in a container of Azure's Blob Storage."""

BUCKETS = (S3, GOOGLE, AZURE)

STORES = "refinery.stores"
"""The seam of stores: the name of an entry point is the scheme of its URIs."""

_SCHEMES = ("s3", "gs", "az", "file", "hf", "http", "https")
"""Schemes of URIs that mean something to us."""

_PRINTED = r"[^\x00-\x1f\x7f\ud800-\udfff]"
_URI = rf"((s3|gs|az)://(?=[^/])|file:///|(?!(s3|gs|az|file):)){_PRINTED}{{1,4000}}"
_PATH = rf"(?!/)(?!(.*/)?\.\.(/|$)){_PRINTED}{{1,1000}}"
_NAME = rf"(?!\.{{1,2}}$)(?!.*[/\\]){_PRINTED}{{1,200}}"
_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(\.trial)?"  # trials have the name of their recipe, and this end

Uri = Annotated[str, Word(_URI, "a path, or s3://, gs:// or az://bucket/prefix"), PLACE]
"""Where a root or a snapshot is."""

OptionalUri = Annotated[str, Word(f"({_URI})?", "a path, s3://, gs:// or az://bucket/prefix, or empty"), PLACE]
"""As `Uri`, or empty."""

NameOrUri = Annotated[str, Word(_URI, "a name, a path, or s3://, gs:// or az://bucket/prefix"), Place(or_name=True)]
"""As `Uri`, or the name of a recipe or policy that was installed."""

Anywhere = Annotated[str, Word(f"({_PRINTED}{{1,4000}})?", "a path, a URI, or an address of the web"), PLACE]
"""Where a source is, on a disk, in a bucket or on the web; what its kind does not read, that refuses."""

ObjectPath = Annotated[str, Word(_PATH, "a path below the root")]
"""A path below a root, or a reference (`path@sha256:digest`)."""

OptionalPath = Annotated[str, Word(f"({_PATH})?", "a path below the root, or empty")]
"""As `ObjectPath`, or empty."""

SNAPSHOT_NAME = Word(_NAME, "a name of up to 200 characters without / and control characters")
"""What admits the names of snapshots."""

SnapshotName = Annotated[str, SNAPSHOT_NAME]
"""The name of a snapshot."""

OptionalSnapshot = Annotated[str, Word(f"({_NAME})?", "a name of up to 200 characters without /, or empty")]
"""As `SnapshotName`, or empty."""

PlainWord = Annotated[str, Word(_WORD, "a word of up to 64 letters, digits, _, - and .")]
"""A name that becomes a part of a path."""

OptionalWord = Annotated[str, Word(f"({_WORD})?", "a word of up to 64 letters, digits, _, - and ., or empty")]
"""As `PlainWord`, or empty."""

FieldName = Annotated[str, Word(rf"(?=.*\S){_PRINTED}{{1,200}}", "the name of a field, of up to 200 characters")]
"""The name of a field of JSON lines, or of a column of a table."""

Note = Annotated[str, Word(r"[^\x00-\x08\ud800-\udfff]{0,2000}", "a text of up to 2,000 characters")]
"""What a person says."""


def on_web(place: str) -> bool:
    """Return whether a place is an address of the web."""
    return place.startswith(("https://", "http://"))


def is_bucket(uri: str) -> bool:
    """Return whether a URI is in a bucket, or in a store that is brought, and not on a disk of this machine."""
    return uri.startswith(BUCKETS) or is_brought(uri)


def is_brought(uri: str) -> bool:
    """Return whether a URI is in a store that another distribution brings."""
    scheme, mark, _ = uri.partition("://")
    return mark != "" and scheme in parts(STORES, _SCHEMES)


def kind_of(uri: str) -> str:
    """Return how a URI of a bucket begins: its scheme."""
    return uri[: uri.index("://") + len("://")]


def bucket_and_prefix(uri: str) -> tuple[str, str]:
    """Return the bucket of a URI, and what its keys begin with, as it is written there."""
    bucket, _, prefix = uri.removeprefix(kind_of(uri)).partition("/")
    return bucket, prefix
