"""Reads where the recipes of an Airflow that teams share go: the operator's file that `REFINERY_DEPLOYMENT` names.

It says where, by whose keys, and how Airflow runs it, and nothing of what is computed: no fingerprint has any of it,
and no recipe can set any of it. Without the variable all recipes go where `REFINERY_ROOT` and `REFINERY_LANDING` say.

An entry that is wrong is refused by itself: its recipes do not run, and those of all other entries do.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml

from pipeline_tasks.binding import bind_fields, require_known, require_mapping, shown
from pipeline_tasks.constraints import OptionalUri, Range, Uri, Word, is_bucket, kind_of
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.nearest import nearest
from pipeline_tasks.recipe import engine_names, untried
from pipeline_tasks.seams import Part, all_parts
from pipeline_tasks.yaml_file import parse_yaml, read_bytes

DEPLOYMENT = "REFINERY_DEPLOYMENT"
"""Names the file; without it one root, one landing and the default connections of Airflow serve all recipes."""

ROOT, LANDING = "REFINERY_ROOT", "REFINERY_LANDING"
"""Name the root and the landing of recipes for which the file names none."""

CATALOG = "REFINERY_CATALOG"
"""Names the catalog in which what is published becomes tables, of recipes that name none."""

CATALOGS = "refinery.catalogs"
"""The seam of catalogs: what opens one, by the name before the colon of its address."""

DEFAULT_PLACES: Mapping[str, str] = {ROOT: "s3://refinery/refined", LANDING: "s3://refinery/landing"}

ANONYMOUS = "anonymous"
"""What stands in place of a connection where requests are nobody's, at AWS."""

FILE = "file://"

GROUPS = ("connections", "alerts")
"""Keys of an entry that have keys of their own."""

_NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,99}"

CONNECTION_ID = Word(f"({_NAME})?", "the id of an Airflow connection")

ConnectionId = Annotated[str, CONNECTION_ID]

Ledger = Annotated[
    str,
    Word(rf"({_NAME}|postgres(ql)?://\S+|(sqlite:///)?/\S+)?", "the id of a connection, postgresql://... or a path"),
]

Line = Annotated[str, Word(r"([^\x00-\x1f\x7f]{1,200})?", "a name in one line")]

_PATTERN = r"[A-Za-z0-9_.*?\[\]!-]{1,100}"

PatternNames = Word(
    rf"{_PATTERN}(, *{_PATTERN})*", "one or more names of recipes with commas between, * for any letters"
)

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
    """The connections of Airflow that a recipe is run by, "" for those that serve all, such as `aws_default`.

    `root` is that of the root, and of all else in buckets of its kind. `landing` is that of the landing alone, and may
    be `anonymous`, or an open store. `engines` has those of engines by name, which are keys of their own in the file.
    """

    root: ConnectionId = ""
    landing: ConnectionId | OpenStore = ""
    engines: Mapping[str, ConnectionId] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a root that nobody could write."""
        if self.root == ANONYMOUS:
            message = f"root: a root is written, which nobody may as {ANONYMOUS}; name the id of a connection"
            raise ValueError(message)

    @property
    def to_landing(self) -> "str | OpenStore":
        """What the landing is read by: the root's connection where none is named."""
        return OpenStore(anonymous=True) if self.landing == ANONYMOUS else self.landing or self.root

    def by_key(self) -> dict[str, str | OpenStore]:
        """Return each by its key in the file, "" for those that serve all."""
        engines = {name: self.engines.get(name, "") for name in engine_names()[1:]}
        return {"root": self.root, "landing": self.landing, **engines}


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

    @property
    def named_connections(self) -> dict[str, str]:
        """The ids of the connections of Airflow that it names, by the keys that name them."""
        pairs = [(f"connections: {key}", name) for key, name in self.connections.by_key().items()]
        pairs += [("ledger", self.ledger if is_connection(self.ledger) else "")]
        pairs += [(f"alerts: {kind}", name) for kind, name in (asdict(self.alerts) if self.alerts else {}).items()]
        return {key: name for key, name in pairs if isinstance(name, str) and name not in ("", ANONYMOUS)}

    def access_to(self, uri: str) -> str | OpenStore:
        """Return the connection by which a URI of a bucket is read and written, "" for the one that serves all recipes.

        Of root and landing the longer one that the URI is below decides; all else of the root's kind is the root's.
        """
        places = {self.its_landing: self.connections.to_landing, self.its_root: self.connections.root}
        above = [place for place in places if is_below(uri, place)]
        if above:
            return places[max(above, key=len)]
        is_other = is_bucket(self.its_root) and not uri.startswith(kind_of(self.its_root))
        return "" if is_other else self.connections.root


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment's file: settings of recipes by entry, in their order, those of all others, and what is `refused`.

    The key of an entry has names and patterns of recipes, with commas between. `lines` are those of the entries.
    """

    path: str = ""
    defaults: Settings = field(default_factory=Settings)
    recipes: Mapping[str, Settings] = field(default_factory=dict)
    refused: Mapping[str, RecipeError] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)

    def entry_of(self, recipe: str) -> str:
        """Return the entry of a recipe: that with its name, else the first pattern of it; "" for the defaults."""
        name, entries = untried(recipe), [*self.lines]
        exact = (entry for entry in entries if name in names_of(entry))
        matching = (entry for entry in entries if any(fnmatchcase(name, pattern) for pattern in names_of(entry)))
        return next(exact, "") or next(matching, "")

    def of(self, recipe: str) -> Settings:
        """Return the settings of a recipe, or of its trials; the defaults for a task that is of no recipe, "".

        RecipeError for a recipe whose entry is refused: it goes nowhere, and not where the defaults say.
        """
        entry = self.entry_of(recipe) if recipe else ""
        if error := self.refused.get(entry):
            raise RecipeError(*error.args) from error
        return self.recipes[entry] if entry else self.defaults

    def all(self) -> Iterator[tuple[str, Settings]]:
        """Yield every entry that is not refused, with its name; the defaults are called `defaults`."""
        yield "defaults", self.defaults
        yield from self.recipes.items()

    def at(self, uri: str) -> Settings:
        """Return the settings that have a place which a URI is below: the longest one; the defaults if none has."""
        found = [(place, settings) for _, settings in self.all() for place in settings.admitted if is_below(uri, place)]
        return max(found, key=lambda pair: len(plain(pair[0])))[1] if found else self.defaults

    def is_at(self, recipe: str, root: str) -> bool:
        """Return whether a recipe goes to a root; one whose entry is refused goes to none."""
        return self.entry_of(recipe) not in self.refused and plain(self.of(recipe).its_root) == plain(root)

    def rooted(self) -> Iterator[tuple[str, Settings]]:
        """Yield each root once, by the entry that names it: "" and the defaults, then the entries with their own."""
        yield "", self.defaults
        yield from ((entry, settings) for entry, settings in self.recipes.items() if self.has_own_root(settings))

    def landed(self) -> Iterator[tuple[str, Settings]]:
        """Yield each pair of root and landing as `rooted` yields roots."""
        yield "", self.defaults
        for entry, settings in self.recipes.items():
            if self.has_own_root(settings) or plain(settings.its_landing) != plain(self.defaults.its_landing):
                yield entry, settings

    def has_own_root(self, settings: Settings) -> bool:
        """Return whether settings go to another root than the defaults."""
        return plain(settings.its_root) != plain(self.defaults.its_root)


def catalog_opener(address: str) -> Part:
    """Return the part that opens the catalog of an address; RecipeError for an address of none."""
    kind, colon, rest = address.partition(":")
    known = all_parts(CATALOGS)
    if colon and rest and kind in known:
        return known[kind]
    forms = " or ".join(f"{name}:..." for name in known)
    meant = "" if kind in known else nearest(kind, known)
    message = f"{address[:100]!r} names no catalog{meant}; write {forms} as `catalog` of `run`, --catalog or {CATALOG}"
    raise RecipeError(message)


def names_of(entry: str) -> list[str]:
    """Return the names and patterns of an entry's key."""
    return [name.strip() for name in entry.split(",")]


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
    return parse_deployment(read_bytes(path), str(path))


def deployed(recipe: str = "") -> Settings:
    """Return the settings of a recipe; those of all for which the file has no entry by default."""
    return deployment().of(recipe)


# --- Reading ---------------------------------------------------------------------------------------------------------


Where = tuple[str, ...]
"""The keys that lead to a value."""

MOST_LEVELS = 4
"""Keys that lead to the innermost value of which the line is said: `recipes`, an entry, `connections`, `root`."""


def parse_deployment(body: bytes, where: str) -> Deployment:
    """Check a deployment's YAML; RecipeError names the line of what is wrong in the file, or in its defaults.

    What is wrong in an entry, or of two entries at once, refuses these alone.
    """
    written, lines = require_mapping(parse_yaml(body, where), where), _lines(body)
    for key in written:
        require_known({key: None}, ("defaults", "recipes"), f"{where}, line {_line(lines, (key,))}")
    parts = {
        key: require_mapping({} if written.get(key) is None else written[key], f"{where}: {key}")
        for key in ("defaults", "recipes")
    }
    defaults = _bound(parts["defaults"], where, lines, ("defaults",))
    settings, refused = dict[str, Settings](), dict[str, RecipeError]()
    for name, entry in ((str(key), value) for key, value in parts["recipes"].items()):
        try:
            settings[name] = _entry(parts["defaults"], entry, where, lines, ("recipes", name))
        except RecipeError as error:
            refused[name] = error
    known = Deployment(
        where,
        defaults,
        settings,
        refused,
        {name: _line(lines, ("recipes", name)) for name in map(str, parts["recipes"])},
    )
    refused |= _clashing(known)
    return replace(known, recipes={name: own for name, own in settings.items() if name not in refused})


def _entry(defaults: Mapping[str, Any], entry: object, where: str, lines: Mapping[Where, int], keys: Where) -> Settings:
    """Return the settings of an entry: what it does not say is said by the defaults, its connections one by one."""
    at = f"{where}, line {_line(lines, keys)}: recipes"
    if not PatternNames.admits(keys[-1]):
        message = f"{at}: {str(keys[-1])[:100]!r} is not {PatternNames.words}"
        raise RecipeError(message)
    own = require_mapping({} if entry is None else entry, f"{at}: {keys[-1]}")
    _bound(own, where, lines, keys)  # what is wrong in it is its own, and not the defaults'
    merged = {**defaults, **own}
    if own.get("connections") and defaults.get("connections"):
        merged["connections"] = {**defaults["connections"], **own["connections"]}
    return _settings(merged, f"{at}: {keys[-1]}")


def _bound(written: Mapping[str, Any], where: str, lines: Mapping[Where, int], keys: Where) -> Settings:
    """Return settings as they are written; RecipeError has the line of the first key that is wrong."""
    said = ": ".join(map(str, keys))
    for key, value in written.items():
        inner = value if key in GROUPS and isinstance(value, Mapping) else {}
        for at, part in [*(((key, name), {name: inner[name]}) for name in inner), ((key,), value)]:
            _settings({key: part}, f"{where}, line {_line(lines, (*keys, *at))}: {said}")
    return _settings(written, f"{where}: {said}")


def _settings(written: Mapping[str, Any], where: str) -> Settings:
    """Return settings as they are written, with the connections of engines apart from those of places."""
    connections = written.get("connections")
    if not isinstance(connections, Mapping):
        return bind_fields(Settings, written, where)
    names = engine_names()[1:]
    require_known(connections, ("root", "landing", *names), f"{where}: connections")
    places = {key: value for key, value in connections.items() if key not in names}
    engines = {key: value for key, value in connections.items() if key in names}
    for name, value in engines.items():
        if not CONNECTION_ID.admits(value):
            message = f"{where}: connections: {name} must be {CONNECTION_ID}, not {shown(value)}"
            raise RecipeError(message)
    return bind_fields(Settings, {**written, "connections": {**places, "engines": engines}}, where)


def _lines(body: bytes) -> dict[Where, int]:
    """Return the lines of the keys of a file that has been read, by the keys that lead to them."""
    found: dict[Where, int] = {}

    def note(node: yaml.Node | None, above: Where) -> None:
        for key, value in node.value if isinstance(node, yaml.MappingNode) and len(above) < MOST_LEVELS else ():
            found.setdefault((*above, str(key.value)), key.start_mark.line + 1)
            note(value, (*above, str(key.value)))

    note(yaml.compose(body.decode("utf-8-sig"), Loader=yaml.SafeLoader), ())
    return found


def _line(lines: Mapping[Where, int], keys: Where) -> int:
    """Return the line of a key; that of the one above for a key that an alias has brought there."""
    return lines.get(keys) or (_line(lines, keys[:-1]) if keys else 1)


def _clashing(known: Deployment) -> dict[str, RecipeError]:
    """Return the errors of entries that name one root, or read one place by different keys.

    A triggerer and a web server have one client for a place, whichever recipe it is looked at for. Whose the place is
    nobody knows: so both entries are refused. One that has a place of the defaults is refused, and they are not.
    """
    errors = {}
    for entry, settings in known.recipes.items():
        if clash := next(_clashes(known, known.defaults, settings), ""):
            errors[entry] = RecipeError(f"{known.path}, line {known.lines[entry]}: {entry} and defaults: {clash}")
    others = [(entry, settings) for entry, settings in known.recipes.items() if entry not in errors]
    for (one, first), (other, second) in combinations(others, 2):
        twice = next((name for name in names_of(one) if name in names_of(other)), "")
        if clash := f"both name {twice}; name it once" if twice else next(_clashes(known, first, second), ""):
            lines = f"{one} (line {known.lines[one]}) and {other} (line {known.lines[other]})"
            errors = dict.fromkeys((one, other), RecipeError(f"{known.path}: {lines}: {clash}")) | errors
    return errors


def _clashes(known: Deployment, first: Settings, second: Settings) -> Iterator[str]:
    roots = plain(first.its_root), plain(second.its_root)
    if roots[0] != roots[1] and (is_below(*roots) or is_below(*reversed(roots))):
        yield f"of the roots {first.its_root} and {second.its_root} one is in the other; name roots that are apart"
    if roots[0] == roots[1] and known.has_own_root(second):
        yield f"{first.its_root} is the root of both; name all its recipes in one entry, or a root for each"
    for place in first.admitted:
        for other in second.admitted:
            inner = place if is_below(place, other) else other if is_below(other, place) else ""
            if is_bucket(inner) and first.access_to(inner) != second.access_to(inner):
                yield f"{inner} has two connections; name the same one in both, or places that do not overlap"
    if roots[0] == roots[1] and first.ledger != second.ledger:
        yield f"{first.its_root} has two ledgers; name the same one in both"


def require_one_root(build: str, read: str) -> None:
    """Raise RecipeError for a recipe that builds from versions of one that goes to another root."""
    known = deployment()
    own, its = known.of(build).its_root, known.of(read).its_root
    if plain(own) != plain(its):
        message = (
            f"{known.path}: recipe {build} builds from versions of {read}, which are in {its}, and goes to {own}; name "
            f'both in one entry: "{known.entry_of(read) or read}, {build}"'
        )
        raise RecipeError(message)


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


def missing_connections(known: Deployment, is_set: Callable[[str], bool]) -> Iterator[str]:
    """Yield for each connection that a file names and Airflow does not have where it is named, and the way out."""
    seen: set[str] = set()
    for entry, settings in known.all():
        at = f", line {known.lines[entry]}: recipes" if entry in known.lines else ""
        for key, name in settings.named_connections.items():
            if name not in seen and not is_set(name):
                yield f"{known.path}{at}: {entry}: {key}: Airflow has no connection {name}; set it, or correct its name"
            seen.add(name)


def idle_names(known: Deployment, recipes: Iterable[str]) -> Iterator[str]:
    """Yield for each name of an entry that is one of no recipe where it is: those recipes go where the defaults say."""
    names = list(recipes)
    for entry, line in known.lines.items():
        for name in names_of(entry):
            if not any(fnmatchcase(recipe, name) for recipe in names):
                yield f"{known.path}, line {line}: recipes: {name}: no recipe has this name; correct or remove it"


def is_connection(ledger: str) -> bool:
    """Return whether a ledger is named by the id of a connection."""
    return re.fullmatch(_NAME, ledger) is not None


# --- Showing ---------------------------------------------------------------------------------------------------------


def resolved_lines(recipe: str) -> list[str]:
    """Return in lines what a recipe resolves to, and by which entry; no line without a file."""
    known = deployment()
    if not known.path or known.entry_of(recipe) in known.refused:
        return []
    settings, entry = known.of(recipe), known.entry_of(recipe)
    shown = {"root": settings.its_root, "landing": settings.its_landing}
    shown |= {name: text for name, text in _texts(settings).items() if text}
    return [
        f"{known.path}: {f'recipes: {entry}' if entry else 'defaults'}",
        *(f"  {k:<22}{v}" for k, v in shown.items()),
    ]


def _texts(settings: Settings) -> dict[str, str]:
    texts = {f"connection of {key}": _shown(name) for key, name in settings.connections.by_key().items()}
    texts["ledger"] = settings.ledger if is_connection(settings.ledger) else without_password(settings.ledger)
    texts |= {name: _shown(getattr(settings, name)) for name in ("places", "pool", "queue", "owner", "tags")}
    texts["access_control"] = ", ".join(settings.access_control)
    texts["alerts"] = ", ".join(filter(None, asdict(settings.alerts).values())) or "none" if settings.alerts else ""
    texts["execution_timeout"] = f"{settings.execution_timeout:g} h" if settings.execution_timeout else ""
    return texts


def _shown(value: str | OpenStore | Iterable[str]) -> str:
    if isinstance(value, OpenStore):
        return f"{ANONYMOUS} at {value.endpoint or 'AWS'}"
    return value if isinstance(value, str) else ", ".join(value)


def without_password(dsn: str) -> str:
    """Return a DSN that may be shown."""
    return re.sub(r"(//[^:/@]*):[^@]*@", r"\1:***@", dsn)
