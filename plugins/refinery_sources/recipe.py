"""Recipes of sources: a kind of source with its query, how fast it is pulled, and when, read from YAML."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pipeline_tasks import seams
from pipeline_tasks.binding import bind_fields, require_known, require_mapping
from pipeline_tasks.constraints import SNAPSHOT_NAME, Anywhere, PlainWord, Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.listing import PROMISE
from pipeline_tasks.nearest import nearest
from pipeline_tasks.recipe import RECIPES, recipe_files, recipe_names
from pipeline_tasks.store import storage
from pipeline_tasks.yaml_file import read_yaml
from refinery_sources.admission import admitted
from refinery_sources.budget import SLOWEST, Rate
from refinery_sources.pull import QUERY, Landed, Pull, landing_at, pull
from refinery_sources.rights import rights_parts
from refinery_sources.source import Flow, Occasion, Source
from refinery_sources.web import Web

SOURCES = RECIPES / "sources"
"""The folder of recipes of sources."""

SEAM = "refinery.sources"
"""The seam of kinds of sources: each of its parts is the dataclass of a query, imported when it is needed."""

MOST_WORKERS = 32

KEEP, TAKEDOWN = "keep", "takedown"
"""What becomes of records that a source says it has deleted: nothing, or they are taken down."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A recipe's keys as written; the query is checked by its kind."""

    name: PlainWord
    source: Mapping[str, Any]
    title: str = ""
    schedule: str = ""
    rate: Annotated[float, Range(SLOWEST)] = 2.0
    bytes_per_second: Annotated[float, Range(0)] = 0.0
    workers: Annotated[int, Range(1, MOST_WORKERS)] = 4
    pool: str = ""
    deletions: Literal["keep", "takedown"] = "keep"
    rights: tuple[Anywhere, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceRecipe:
    """What is pulled, and how; `schedule` is a line of cron in UTC, empty for one that is pulled on request.

    `pool` is a pool of Airflow whose slots bound how many of its pulls run at once, "" for that of all tasks.
    `deletions` is what becomes of records that the source says it has deleted. `rights` are addresses of files that
    say under which rights the data is. `within` are the places that the operator names, without links, where somebody
    else has changed the query; None for any.
    """

    name: str
    kind: str
    source: Source
    title: str = ""
    schedule: str = ""
    rate: Rate = field(default_factory=lambda: Rate(2.0))
    workers: int = 4
    pool: str = ""
    deletions: Literal["keep", "takedown"] = "keep"
    rights: tuple[Anywhere, ...] = ()
    within: frozenset[str] | None = None


def load_source(name: str, changed: Mapping[str, Any] | None = None, folder: Path = SOURCES) -> SourceRecipe:
    """Read a recipe by name, or by path when `name` ends in `.yaml`; `changed` are other values of its query."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else recipe_files(folder).get(name)
    if path is None or not path.exists():
        names = recipe_names(folder)
        message = (
            f"no recipe of a source {name[:100]!r}{nearest(name, names)}; there are: {', '.join(names)}; for one of "
            "your own give the path of its YAML file"
        )
        raise RecipeError(message)
    recipe = parse_source(read_yaml(path), str(path), changed or {})
    if path.stem == name != recipe.name:  # known by its name, and not by a path
        message = f"{path}: it is named {recipe.name!r} inside; a recipe that is known by name has that of its file"
        raise RecipeError(message)
    return recipe


def parse_source(raw: object, where: str, changed: Mapping[str, Any]) -> SourceRecipe:
    """Check a recipe's YAML; RecipeError names what is unknown, missing or wrong."""
    written = bind_fields(_Written, {"name": Path(where).stem, **require_mapping(raw, where)}, where)
    kinds = seams.known(SEAM, written.source)
    require_known(written.source, kinds, f"{where}: source")
    if len(written.source) != 1:
        message = f"{where}: source names {len(written.source)} kinds; write one of {', '.join(kinds)}, and its query"
        raise RecipeError(message)
    ((kind, query),) = written.source.items()
    fields = {**require_mapping(query or {}, f"{where}: source: {kind}"), **changed}
    source = bind_fields(kind_of(kind), fields, f"{where}: source: {kind}")
    rate = Rate(written.rate, written.bytes_per_second)
    rights_parts(written.rights)
    names = ("name", "title", "schedule", "workers", "pool", "deletions", "rights")
    known = {name: getattr(written, name) for name in names}
    return SourceRecipe(**known, kind=kind, source=source, rate=rate)


def kind_of(kind: str) -> type[Source]:
    """Return the dataclass of a kind of source: ours, or one that another distribution brings."""
    part = seams.part_of(SEAM, kind)
    brought: type[Source] = part.load(type)
    if not is_dataclass(brought):
        message = f"{part}, which is no dataclass, and a kind of source is one; name another"
        raise RecipeError(message)
    return brought


def form_of(kind: str) -> Mapping[str, Mapping[str, Any]]:
    """Return what a form says of the fields of a kind of source, as JSON schema: the `FORM` of its module, if any."""
    return cast("Mapping[str, Mapping[str, Any]]", getattr(sys.modules[kind_of(kind).__module__], "FORM", {}))


def occasion_of(recipe: SourceRecipe, landings: str, web: Web, moment: datetime) -> Occasion:
    """Return what a query is asked on: what has landed below `landings` by this recipe before, and what has not ended.

    The snapshots of a recipe have names that begin with its own and `-`, and sort in the order in which they landed.
    Those of a recipe whose name begins with this one's, and says so, are not looked at. Of several that have not ended
    the newest is gone on with.
    """
    store = storage.connect(landings)
    names = sorted((name for name in store.folders() if name.startswith(f"{recipe.name}-")), reverse=True)
    occasion = Occasion(web, recipe.name, moment)
    for name in names:
        landed = _read(landings, name, PROMISE)
        block = (landed or {}).get("source", {})
        if landed is not None and block.get("recipe", recipe.name) == recipe.name:
            return replace(occasion, before=block)
        begun = None if landed or occasion.unfinished else _read(landings, name, QUERY)
        if begun is not None and begun.get("recipe", recipe.name) == recipe.name:
            occasion = replace(occasion, unfinished=begun["query"])
    return occasion


def _read(landings: str, name: str, path: str) -> dict[str, Any] | None:
    try:
        return cast("dict[str, Any]", json.loads(storage.connect(landings).read(f"{name}/{path}")))
    except FileNotFoundError:
        return None


def resolved(recipe: SourceRecipe, landings: str, web: Web, moment: datetime) -> Source:
    """Return the query of a recipe as it is asked now; the snapshot that it lands is known then."""
    return resolve(recipe, occasion_of(recipe, landings, web, moment))


def resolve(recipe: SourceRecipe, occasion: Occasion) -> Source:
    """Return the query of a recipe as it is asked on an occasion; RecipeError for what the recipe does not name.

    Its snapshot is named below the landing, also where a run or an earlier pull has said the name.
    """
    occasion.web.gate.within = recipe.within
    with admitted(recipe.source, occasion.web.gate, recipe.rights):
        source = recipe.source.resolved(occasion)
    if not SNAPSHOT_NAME.admits(source.snapshot):
        message = f"{source.snapshot[:200]!a} is no name of a snapshot: {SNAPSHOT_NAME}; correct the query"
        raise RecipeError(message)
    return source


def pull_recipe(
    recipe: SourceRecipe, landings: str, spool: Path, web: Web, moment: datetime, flow: Flow | None = None
) -> tuple[str, Landed]:
    """Pull what a recipe asks for now into a folder below `landings`; return its place, and what has landed."""
    source = resolved(recipe, landings, web, moment)
    place = f"{landings.rstrip('/')}/{source.snapshot}"
    by = Pull(web, recipe.workers, flow or Flow(), recipe.name, recipe.rights)
    return place, pull(source, landing_at(place, spool), by)


def each_source(folder: Path = SOURCES) -> Iterator[SourceRecipe]:
    """Yield the recipes of sources in `folder`, by name."""
    yield from map(load_source, map(str, recipe_files(folder).values()))


def chosen_sources(names: str = "") -> list[SourceRecipe]:
    """Return the recipes of sources of a line of names or paths with commas between them; empty: all of the package.

    RecipeError for two of one name.
    """
    chosen = [load_source(name.strip()) for name in names.split(",") if name.strip()] or list(each_source())
    name, times = Counter(recipe.name for recipe in chosen).most_common(1)[0]
    if times > 1:
        message = f"{times} recipes of sources have the name {name!r}; give each `name:` of its own"
        raise RecipeError(message)
    return chosen


def deployed_names() -> Iterator[str]:
    """Yield the names of the recipes of sources that have a DAG."""
    yield from (recipe.name for recipe in chosen_sources(os.environ.get("REFINERY_SOURCES", "")))


def hosts_of(query: Mapping[str, Any]) -> list[str]:
    """Return the hosts of the addresses that a query names, sorted."""
    hosts = {urlsplit(text).netloc.lower() for text in _texts(query) if text.startswith(("https://", "http://"))}
    return sorted(hosts - {""})


def reopen_hosts(source: Source, web: Web) -> None:
    """Forget that the hosts of a source have refused requests, or asked to wait: a person has decided to go on."""
    for url in [*(f"https://{host}" for host in hosts_of(source.query())), getattr(source, "crawls", "")]:
        if url:
            web.budget(url).reopen()


def _texts(value: object) -> Iterator[str]:
    """Yield the texts of a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for inner in value.values() for text in _texts(inner))
    elif isinstance(value, list | tuple):
        yield from (text for inner in value for text in _texts(inner))
