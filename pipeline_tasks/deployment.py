"""Reads where the recipes of an Airflow that teams share go: the operator's file that `REFINERY_DEPLOYMENT` names.

It says where, by whose keys, and how Airflow runs it, and nothing of what is computed: no fingerprint has any of it,
and no recipe can set any of it. Without the variable all recipes go where `REFINERY_ROOT` and `REFINERY_LANDING` say.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pipeline_tasks.binding import bind_fields, require_known, require_mapping
from pipeline_tasks.constraints import OptionalUri, Range, Uri, Word
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import untried
from pipeline_tasks.yaml_file import read_yaml

DEPLOYMENT = "REFINERY_DEPLOYMENT"
"""Names the file; without it one root, one landing and the default connections of Airflow serve all recipes."""

ROOT, LANDING = "REFINERY_ROOT", "REFINERY_LANDING"
"""Name the root and the landing of recipes for which the file names none."""

DEFAULT_PLACES: Mapping[str, str] = {ROOT: "s3://refinery/refined", LANDING: "s3://refinery/landing"}

ANONYMOUS = "anonymous"
"""What stands in place of a connection where requests are nobody's, at AWS."""

S3, FILE = "s3://", "file://"

_NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,99}"

ConnectionId = Annotated[str, Word(f"({_NAME})?", "the id of an Airflow connection")]

Ledger = Annotated[
    str,
    Word(rf"({_NAME}|postgres(ql)?://\S+|(sqlite:///)?/\S+)?", "the id of a connection, postgresql://... or a path"),
]

Line = Annotated[str, Word(r"([^\x00-\x1f\x7f]{1,200})?", "a name in one line")]

PatternName = Word(r"[A-Za-z0-9_.*?\[\]!-]{1,100}", "a name of recipes, in which * stands for any letters")

Action = Literal["can_read", "can_edit", "can_delete", "can_create", "menu_access"]


@dataclass(frozen=True, slots=True)
class OpenStore:
    """A store whose requests are nobody's: they are not signed. Without `endpoint` it is AWS."""

    anonymous: bool
    endpoint: str = ""
    region: str = "us-east-1"

    def __post_init__(self) -> None:
        """Raise ValueError for one that is not anonymous, or whose endpoint is none."""
        if self.anonymous is not True:
            message = "write the id of a connection, or `anonymous: true`"
            raise ValueError(message)
        parts = urlsplit(self.endpoint)
        _ = parts.port  # ValueError for one that is none
        if self.endpoint and (parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc):
            message = "endpoint: name an address of https:// or http://, without a user"
            raise ValueError(message)

    def variables(self) -> dict[str, str]:
        """Return its settings by the names of boto3's variables."""
        where = {"AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": self.region}
        return {"AWS_NO_SIGN_REQUEST": "YES", **{name: value for name, value in where.items() if value}}


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections of Airflow that a recipe is run by, "" for those that serve all: `aws_default`, `spark_default`.

    `root` is that of the root, and of all else that is in S3. `landing` is that of the landing alone, and may be
    `anonymous`, or an open store.
    """

    root: ConnectionId = ""
    landing: ConnectionId | OpenStore = ""
    spark: ConnectionId = ""
    ray: ConnectionId = ""

    def __post_init__(self) -> None:
        """Raise ValueError for a root that nobody could write."""
        if self.root == ANONYMOUS:
            message = f"root: a root is written, which nobody may as {ANONYMOUS}; name the id of a connection"
            raise ValueError(message)

    @property
    def to_landing(self) -> "str | OpenStore":
        """What the landing is read by: the root's connection where none is named."""
        return OpenStore(anonymous=True) if self.landing == ANONYMOUS else self.landing or self.root


@dataclass(frozen=True, slots=True)
class Channels:
    """The connections of Airflow that alerts go to; a channel that is not named is none."""

    slack: ConnectionId = ""
    webhook: ConnectionId = ""
    email: ConnectionId = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a recipe goes, by whose keys, and how Airflow runs it; what is empty is as without the file.

    `places` are further places that its runs may name. `access_control` is that of a DAG of Airflow: actions by role,
    or by role and resource. `execution_timeout` are hours. `alerts` are the channels, None for those of all recipes.
    """

    root: OptionalUri = ""
    landing: OptionalUri = ""
    places: tuple[Uri, ...] = ()
    ledger: Ledger = ""
    connections: Connections = field(default_factory=Connections)
    pool: Line = ""
    queue: Line = ""
    owner: Line = ""
    tags: tuple[Line, ...] = ()
    access_control: Mapping[str, tuple[Action, ...] | Mapping[str, tuple[Action, ...]]] = field(default_factory=dict)
    alerts: Channels | None = None
    execution_timeout: Annotated[float, Range(0, 24 * 365)] = 0.0

    @property
    def its_root(self) -> str:
        """The root, of this file or of `REFINERY_ROOT`."""
        return self.root or os.environ.get(ROOT) or DEFAULT_PLACES[ROOT]

    @property
    def its_landing(self) -> str:
        """The landing, of this file or of `REFINERY_LANDING`."""
        return self.landing or os.environ.get(LANDING) or DEFAULT_PLACES[LANDING]

    @property
    def admitted(self) -> tuple[str, ...]:
        """The places that its runs may name, and all below them."""
        return (self.its_root, self.its_landing, *self.places)

    def access_to(self, uri: str) -> str | OpenStore:
        """Return the connection by which a URI of S3 is read and written, "" for the one that serves all recipes.

        Of root and landing the longer one that the URI is below decides; all else is the root's.
        """
        places = {self.its_landing: self.connections.to_landing, self.its_root: self.connections.root}
        above = [place for place in places if is_below(uri, place)]
        return places[max(above, key=len)] if above else self.connections.root


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment's file: settings of recipes by name or pattern, in their order, and those of all others."""

    path: str = ""
    defaults: Settings = field(default_factory=Settings)
    recipes: Mapping[str, Settings] = field(default_factory=dict)

    def entry_of(self, recipe: str) -> str:
        """Return the entry of a recipe: its name, else the first pattern that it matches; "" for the defaults."""
        name = untried(recipe)
        if name in self.recipes:
            return name
        return next((pattern for pattern in self.recipes if fnmatchcase(name, pattern)), "")

    def of(self, recipe: str) -> Settings:
        """Return the settings of a recipe, or of its trials; the defaults for a task that is of no recipe, ""."""
        entry = self.entry_of(recipe) if recipe else ""
        return self.recipes[entry] if entry else self.defaults

    def all(self) -> Iterator[tuple[str, Settings]]:
        """Yield every entry with its name; the defaults are called `defaults`."""
        yield "defaults", self.defaults
        yield from self.recipes.items()

    def at(self, uri: str) -> Settings:
        """Return the settings that have a place which a URI is below: the longest one; the defaults if none has."""
        found = [(place, settings) for _, settings in self.all() for place in settings.admitted if is_below(uri, place)]
        return max(found, key=lambda pair: len(plain(pair[0])))[1] if found else self.defaults

    @property
    def roots(self) -> list[str]:
        """The roots of all entries, that of the defaults first, each once."""
        return list(dict.fromkeys(plain(settings.its_root) for _, settings in self.all()))


def deployment() -> Deployment:
    """Return what the file of `REFINERY_DEPLOYMENT` says, an empty one without it; RecipeError names what is wrong.

    The file is read again when it has changed.
    """
    named = os.environ.get(DEPLOYMENT, "").strip()
    if not named:
        return Deployment()
    path = Path(named).expanduser()
    try:
        stamp = path.stat()
    except OSError as error:
        message = f"{path} cannot be read ({error.strerror}); correct {DEPLOYMENT}, or remove it"
        raise RecipeError(message) from error
    places = tuple(os.environ.get(name, "") for name in (ROOT, LANDING))
    return _read(path, (stamp.st_mtime_ns, stamp.st_size, stamp.st_ino), places)


@lru_cache(maxsize=8)
def _read(path: Path, stamp: tuple[int, ...], places: tuple[str, ...]) -> Deployment:
    """Read a file, once for each state of it, and of the variables that complete it."""
    del stamp, places
    return parse_deployment(read_yaml(path), str(path))


def deployed(recipe: str = "") -> Settings:
    """Return the settings of a recipe; those of all for which the file has no entry by default."""
    return deployment().of(recipe)


# --- Reading ---------------------------------------------------------------------------------------------------------


def parse_deployment(raw: object, where: str) -> Deployment:
    """Check a deployment's YAML; RecipeError names what is unknown, wrong, or of two teams at once."""
    written = require_mapping(raw, where)
    require_known(written, ("defaults", "recipes"), where)
    defaults = require_mapping(written.get("defaults") or {}, f"{where}: defaults")
    recipes = require_mapping(written.get("recipes") or {}, f"{where}: recipes")
    for name in recipes:
        if not PatternName.admits(name):
            message = f"{where}: recipes: {str(name)[:100]!r} is no {PatternName.words}"
            raise RecipeError(message)
    known = Deployment(
        where,
        bind_fields(Settings, defaults, f"{where}: defaults"),
        {name: _entry(defaults, entry, f"{where}: recipes: {name}") for name, entry in recipes.items()},
    )
    _require_apart(known)
    return known


def _entry(defaults: Mapping[str, Any], entry: object, where: str) -> Settings:
    """Return the settings of an entry: what it does not say is said by the defaults, its connections one by one."""
    own = require_mapping(entry or {}, where)
    bind_fields(Settings, own, where)  # what is wrong in it is its own, and not the defaults'
    merged = {**defaults, **own}
    if "connections" in own and "connections" in defaults:
        merged["connections"] = {**defaults["connections"], **own["connections"]}
    return bind_fields(Settings, merged, where)


def _require_apart(known: Deployment) -> None:
    """Raise RecipeError where two entries read one place by different keys, or one root has two ledgers.

    A triggerer and a web server have one client for a place, whichever recipe it is looked at for.
    """
    for (one, first), (other, second) in combinations(known.all(), 2):
        if clash := next(_clashes(first, second), ""):
            message = f"{known.path}: {one} and {other}: {clash}"
            raise RecipeError(message)


def _clashes(first: Settings, second: Settings) -> Iterator[str]:
    for place in first.admitted:
        for other in second.admitted:
            inner = place if is_below(place, other) else other if is_below(other, place) else ""
            if inner.startswith(S3) and first.access_to(inner) != second.access_to(inner):
                yield f"{inner} has two connections; name the same one in both, or places that do not overlap"
    if plain(first.its_root) == plain(second.its_root) and first.ledger != second.ledger:
        yield f"{first.its_root} has two ledgers; name the same one in both"


def is_below(uri: str, place: str) -> bool:
    """Return whether a URI is a place, or below it."""
    return f"{plain(uri)}/".startswith(f"{plain(place)}/")


def plain(uri: str) -> str:
    """Return a URI as it is compared with others."""
    return uri.removeprefix(FILE).rstrip("/")


# --- Ledgers ---------------------------------------------------------------------------------------------------------


def ledger_at(root: str) -> str:
    """Return the ledger of a root as the file says it: a DSN, a path or the id of a connection; "" for nothing."""
    named = (settings.ledger for _, settings in deployment().all() if plain(settings.its_root) == plain(root))
    return next(filter(None, named), "")


def is_connection(ledger: str) -> bool:
    """Return whether a ledger is named by the id of a connection."""
    return re.fullmatch(_NAME, ledger) is not None


# --- Showing ---------------------------------------------------------------------------------------------------------


def resolved_lines(recipe: str) -> list[str]:
    """Return in lines what a recipe resolves to, and by which entry; no line without a file."""
    known = deployment()
    if not known.path:
        return []
    settings, entry = known.of(recipe), known.entry_of(recipe)
    told = {"root": settings.its_root, "landing": settings.its_landing}
    told |= {name: text for name, text in _told(settings).items() if text}
    return [
        f"{known.path}: {f'recipes: {entry}' if entry else 'defaults'}",
        *(f"  {k:<22}{v}" for k, v in told.items()),
    ]


def _told(settings: Settings) -> dict[str, str]:
    connections = settings.connections
    told = {f"connection of {entry.name}": _shown(getattr(connections, entry.name)) for entry in fields(connections)}
    told["ledger"] = settings.ledger if is_connection(settings.ledger) else without_password(settings.ledger)
    told |= {name: _shown(getattr(settings, name)) for name in ("places", "pool", "queue", "owner", "tags")}
    told["access_control"] = ", ".join(settings.access_control)
    told["alerts"] = ", ".join(filter(None, asdict(settings.alerts).values())) or "none" if settings.alerts else ""
    told["execution_timeout"] = f"{settings.execution_timeout:g} h" if settings.execution_timeout else ""
    return told


def _shown(value: str | OpenStore | Iterable[str]) -> str:
    if isinstance(value, OpenStore):
        return f"{ANONYMOUS} at {value.endpoint or 'AWS'}"
    return value if isinstance(value, str) else ", ".join(value)


def without_password(dsn: str) -> str:
    """Return a DSN that may be shown."""
    return re.sub(r"(//[^:/@]*):[^@]*@", r"\1:***@", dsn)
