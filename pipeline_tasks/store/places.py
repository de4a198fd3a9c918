"""Says which places the operator names: those that runs may name besides their own, and lists may point to."""

from collections.abc import Iterable

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store import store_settings
from pipeline_tasks.store.store_settings import OF_PLACES, PLACES


def give_places(places: Iterable[str], landing: str) -> None:
    """Let the lists of a landing, and of all below it, point to these places, from now on."""
    store_settings.give(f"{OF_PLACES}{landing}", {PLACES: "\n".join(places)})


def require_pointed(folder: str, objects: Iterable[tuple[str, str]]) -> None:
    """Raise RecipeError for an object, by its address and store, that the list of a folder may not point to.

    One of a store that is not this process's own is below a place that is named with it: `store+s3://bucket`.
    """
    known = store_settings.settings_of(f"{OF_PLACES}{folder}")
    named = list(filter(None, dict(known.variables).get(PLACES, "").split("\n"))) if known.are_given else []
    for address, store in objects:
        place = f"{store}+{address}" if store else address
        if ".." in address.split("/") or not any(f"{place}/".startswith(f"{each.rstrip('/')}/") for each in named):
            bucket = "/".join(place.split("/")[:3])
            message = (
                f"{folder} lists {place}, which is no place that a list may point to; add {bucket} to {PLACES}, or to "
                "`places` of the deployment's file, if who writes there may have what is in it"
            )
            raise RecipeError(message)
