"""Catalogs on this machine, each named as a user names one: Iceberg by SQLite, and DuckLake by SQLite."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from refinery_exports.tables.catalog import Catalog, State
from refinery_exports.tables.catalogs import opened

KINDS = ("iceberg", "ducklake")


def settings_of(kind: str, folder: Path) -> tuple[str, dict[str, str]]:
    """Return the address of a catalog of a kind in a folder, and the environment that it needs."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "ducklake":
        return f"ducklake:sqlite:{folder / 'lake.sqlite'}", {}
    variable = "PYICEBERG_CATALOG__LAKE"
    own = {"TYPE": "sql", "URI": f"sqlite:///{folder / 'lake.db'}", "WAREHOUSE": (folder / "warehouse").as_uri()}
    return "iceberg:lake", {f"{variable}__{name}": value for name, value in own.items()}


def catalog_at(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of a catalog of a kind in a folder; it is that of the deployment."""
    address, variables = settings_of(kind, folder)
    for name, value in {**variables, "REFINERY_CATALOG": address}.items():
        monkeypatch.setenv(name, value)
    return address


def states(address: str, recipe: str) -> Mapping[str, State]:
    """Return the state of each table of a recipe."""
    with opened(address) as catalog:
        return states_in(catalog, recipe)


def states_in(catalog: Catalog, recipe: str) -> Mapping[str, State]:
    """Return the state of each table of a recipe in an open catalog."""
    found = {name: catalog.state(recipe, name) for name in catalog.names(recipe)}
    return {name: state for name, state in found.items() if state is not None}


def summary(address: str, recipe: str) -> dict[str, tuple[int, frozenset[str]]]:
    """Return the rows and the files of each table, which is what two ways of registering have to leave alike."""
    return {
        name: (sum(state.files.values()), frozenset(state.files)) for name, state in states(address, recipe).items()
    }
