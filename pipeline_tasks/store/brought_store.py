"""Opens stores that other distributions bring: the part of a scheme is a function of the URI that returns a store."""

from collections.abc import Callable

from pipeline_tasks.constraints import STORES, kind_of
from pipeline_tasks.seams import parts
from pipeline_tasks.store.protocol import Store


def brought_store(uri: str) -> Store:
    """Return the store at a URI that is brought (`constraints.is_brought`)."""
    opened: Callable[[str], Store] = parts(STORES)[kind_of(uri).removesuffix("://")].load()
    return opened(uri)
