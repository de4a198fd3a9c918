"""What a recipe says of an API: its address, its pages, where its records are, and what of them is a document."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from pipeline_tasks.binding import require_known
from pipeline_tasks.constraints import Anywhere, Range
from pipeline_tasks.schema import FIELDS
from pipeline_tasks.store.credential import Credential
from refinery_sources.api.credentials import Auth
from refinery_sources.web import require_address

TARGETS = (*dict.fromkeys((*FIELDS, "html")),)
"""What of a record a field becomes; `html` is a text of HTML, which goes through `extract`."""

NUMBERED, FOLLOWED = ("page", "offset"), ("cursor", "link", "next")
"""Ways of paging: by counting, or by what each page says of the next one."""

_ENDS = {**dict.fromkeys(NUMBERED, ("", "empty", "short", "total")), **dict.fromkeys(FOLLOWED, ("", "absent", "empty"))}
_SECRET = re.compile(r"(?i)(.*[_-])?(api[_-]?key|key|token|secret|password|auth|authorization|cookie|signature)")

Scalar = str | int | float | bool
"""A value of a param."""


@dataclass(frozen=True, slots=True)
class Pages:
    """How pages follow each other, and what proves that one is the last.

    `param` has the cursor, the number of the page or that of its first record, and `first` its first value. `next` is
    the place of the next cursor, or of the next URL. `size` are the records of a full page, which `size_param` asks
    for. `more` is the path of a value that is true unless the page is the last one.
    """

    by: Literal["cursor", "link", "next", "page", "offset", "once"]
    param: str = ""
    next: str = ""
    first: str | int = ""
    size: Annotated[int, Range(0, 1_000_000)] = 0
    size_param: str = ""
    end: Literal["", "absent", "empty", "short", "total"] = ""
    more: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense together."""
        needs_next, has_param = self.by in ("cursor", "next"), self.by in ("cursor", *NUMBERED)
        numbers = self.by in NUMBERED and not isinstance(self.first, int) and self.first != ""
        wrong = {
            f"by {self.by} needs `next`, where an answer has the next cursor or URL": needs_next and not self.next,
            f"by {self.by} has no `next`": bool(self.next) and not needs_next,
            f"by {self.by} needs `param`, which the request sends it by": has_param and not self.param,
            f"by {self.by} has no `param` and no `first`": bool(self.param or self.first != "") and not has_param,
            f"by {self.by} counts, and `first` is no number": numbers,
            "`size_param` needs a `size`": bool(self.size_param) and not self.size,
            "`end: short` needs the `size` of a full page": self.end == "short" and not self.size,
            f"by {self.by} does not end by {self.end!r}": self.end not in _ENDS.get(self.by, ("",)),
        }
        for message, is_wrong in wrong.items():
            if is_wrong:
                raise ValueError(message)

    @property
    def start(self) -> str | int:
        """The value of `param` in the first request, "" to send none."""
        return self.first if self.first != "" else {"page": 1, "offset": 0}.get(self.by, "")


@dataclass(frozen=True, slots=True)
class Since:
    """How only what is new or changed is asked for: `param` has the newest value of `field` that landed before.

    The first pull asks since `first`, or for all. `overlap` seconds (or units of a number) are asked for again.
    `format` is how a time is sent: as the field has it, in seconds (`epoch`), or by a format of `strftime`, in UTC.
    """

    param: str
    field: str
    first: str | int | float = ""
    overlap: Annotated[float, Range(0)] = 0.0
    format: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """One part for each of `values`: a value of the one param, or a list of a value for each of `params`."""

    params: tuple[str, ...]
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Raise ValueError unless each part has a value for each param."""
        rows = self.rows
        if not self.params or not rows or any(len(row) != len(self.params) for row in rows):
            message = f"split has one of its `values`, or more, without a value for each of {', '.join(self.params)}"
            raise ValueError(message)
        if not all(isinstance(value, str | int | float) for row in rows for value in row):
            message = "split has values that are neither texts nor numbers; quote dates"
            raise ValueError(message)
        if len({tuple(map(text_of, row)) for row in rows}) < len(rows):
            message = "split has the same values twice"
            raise ValueError(message)

    @property
    def rows(self) -> list[tuple[Scalar, ...]]:
        """The values of each part."""
        return [tuple(value) if isinstance(value, list | tuple) else (value,) for value in self.values]


@dataclass(frozen=True, slots=True)
class Deleted:
    """How the API says what is deleted: records whose `field` is true or not empty, or the records of another URL.

    Those are at `records` of its pages, which follow each other as the others do, with their ids at `id`.
    """

    field: str = ""
    url: Anywhere = ""
    records: str = ""
    id: str = "id"

    def __post_init__(self) -> None:
        """Raise ValueError unless one of the two is named."""
        if bool(self.field) == bool(self.url):
            message = "deleted needs `field` or `url`, and not both"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Query:
    """A query of an API, as a recipe writes it.

    `records` is the path of the list of records, and `id` that of what tells a record from others. `fields` are the
    paths of what becomes a document; other fields are kept as metadata. `total` is the place of the number of records.
    The schema of records is compared with that of the snapshot before, while `schema_version` is the same.
    """

    url: Anywhere
    id: str
    fields: Mapping[str, str]
    pages: Pages
    records: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    total: str = ""
    auth: Auth | None = None
    since: Since | None = None
    split: Split | None = None
    deleted: Deleted | None = None
    schema_version: int = 1
    terms_text: str = ""
    terms_url: str = ""

    def __post_init__(self) -> None:
        """Raise RecipeError or ValueError for a query that makes no sense."""
        for url in filter(None, (self.url, self.deleted.url if self.deleted else "", self.terms_url)):
            require_address(url)
        require_known(self.fields, TARGETS, "fields")
        if ("text" in self.fields) == ("html" in self.fields):
            message = "fields needs the path of `text`, or that of `html`, and not both"
            raise ValueError(message)
        if not self.id:
            message = "`id` is empty; name what tells a record from all others"
            raise ValueError(message)
        self._require_params()

    def _require_params(self) -> None:
        """Raise ValueError for a param with two meanings, no value, or a secret."""
        for name in (*self.params, *self.headers):
            if _SECRET.fullmatch(name):
                message = f"{name!r} looks like a secret, and recipes are stored and shown; let `auth` send it"
                raise ValueError(message)
        for name, value in self.params.items():
            if not isinstance(value, str | int | float | list) or value == []:
                message = f"params: {name} is {value!r:.80}, and no value of a param; quote texts such as dates"
                raise ValueError(message)
        names = [*self.params, *(self.split.params if self.split else ()), self.since.param if self.since else ""]
        names += [self.pages.param, self.pages.size_param]
        named = [name for name in names if name]
        twice = next((name for name in named if named.count(name) > 1), None)
        if twice is not None:
            message = f"the param {twice!r} has two meanings; each is sent once"
            raise ValueError(message)

    @property
    def connection(self) -> str:
        """The Airflow connection with the secret, "" for none."""
        return self.auth.connection if self.auth else ""

    @property
    def secrets(self) -> Mapping[Credential, tuple[str, ...]]:
        """The addresses to which what says who asks may go: those of the query."""
        places = tuple(filter(None, (self.url, self.deleted.url if self.deleted else "")))
        return {self.auth.credential: places} if self.auth else {}

    def written(self) -> dict[str, Any]:
        """Return the query as JSON."""
        fields = {name: value for name in Query.__dataclass_fields__ if (value := getattr(self, name))}
        return {"source": "api", **json.loads(json.dumps(fields, default=asdict))}


def text_of(value: object) -> str:
    """Return a value as a request sends it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def url_with(url: str, params: Mapping[str, Any]) -> str:
    """Return a URL with params; a list is sent as several of one name."""
    pairs = [
        (name, text_of(item))
        for name, value in params.items()
        for item in (value if isinstance(value, list | tuple) else (value,))
    ]
    return f"{url}?{urlencode(pairs)}" if pairs else url
