"""The card of an engine: what others ask of it before it runs anything; and which engines there are.

`local` is the core's. All others come by entry points `refinery.engines`, ours and those of other distributions:
each is an `EngineCard`, in a module that imports little, as recipes, forms, pages and checks of a run ask for it.
"""

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pipeline_tasks.engines import reach
from pipeline_tasks.engines.cluster_jobs import ClusterJobs
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import ENGINES, LOCAL, engine_names
from pipeline_tasks.seams import part_of


def as_written(address: str) -> str:
    """Return an address as it is: any is one."""
    return address


def nothing(*asked: str) -> None:
    """Need nothing."""


def no_checks(_place: str, _root: str) -> Iterable[tuple[str, Callable[[], str]]]:
    """Return no checks."""
    return ()


def no_jobs(_address: str) -> type[ClusterJobs] | None:
    """Return None: the engine takes tasks of a process that is elsewhere."""
    return None


@dataclass(frozen=True, slots=True)
class EngineCard:
    """What an engine is; its name is that of its entry point, and only `module` has to be said.

    `module` runs tasks (`choose.EngineModule`), and is imported when they come. It needs the `library`, which is what
    `way_out` says how to install. `title` is how messages name the engine.

    On this machine it is at the address `here`, for which `refinery run` sets a connection of the type `conn_type`;
    `needs` raises RecipeError unless this machine has what it takes. `checks` yields what `refinery setup doctor` looks
    at: a name, and what returns a version or a state, or raises RecipeError; it is given the place that the connection
    of the environment names, and the root, each "" for none.

    `address` completes an address as it was written; RecipeError for one that leads nowhere. `schemes` has the scheme
    for which a connection's type stands, and the addresses of `path_schemes` go on behind the host.
    `require_answer(address)` raises ClusterUnreachable unless a cluster answers, and `require_reach(address, *uris)`
    RecipeError for a root or a landing that it cannot reach. `jobs(address)` is what starts whole drivers there, None
    where it takes tasks of a process that is elsewhere.
    """

    module: str
    title: str = ""
    library: str = ""
    way_out: str = ""
    here: str = "local"
    conn_type: str = "generic"
    needs: Callable[[], object] = nothing
    checks: Callable[[str, str], Iterable[tuple[str, Callable[[], str]]]] = no_checks
    address: Callable[[str], str] = as_written
    schemes: Mapping[str, str] = field(default_factory=dict)
    path_schemes: tuple[str, ...] = ()
    require_answer: Callable[[str], None] = reach.require_answer
    require_reach: Callable[..., None] = nothing
    jobs: Callable[[str], type[ClusterJobs] | None] = no_jobs

    def require_here(self) -> None:
        """Raise RecipeError unless this machine has the library and what else it needs."""
        self.require_library()
        self.needs()

    def require_library(self) -> None:
        """Raise RecipeError unless the library is installed."""
        if self.library and importlib.util.find_spec(self.library) is None:
            message = f"{self.title} needs {self.library}, which is not installed: {self.way_out}"
            raise RecipeError(message)


HERE = EngineCard("pipeline_tasks.engines.local")
"""The card of `local`."""


def engine_card(name: str) -> EngineCard:
    """Return the card of an engine; RecipeError for one that nobody brings, or that its package cannot give."""
    if name == LOCAL:
        return HERE
    if name not in engine_names():
        message = f"no engine {name!r}; engines are {', '.join(engine_names())}"
        raise RecipeError(message)
    card = part_of(ENGINES, name).load(EngineCard)
    return replace(card, title=card.title or name.capitalize())


def engine_cards() -> dict[str, EngineCard]:
    """Return the card of every engine but `local`, by name; one of a broken package is left out, as nobody asked."""
    found = {}
    for name in engine_names()[1:]:
        try:
            found[name] = engine_card(name)
        except RecipeError:
            continue
    return found
