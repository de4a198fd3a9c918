"""Says which versions of the libraries are installed here that decide rows: they are identity (decision 71)."""

import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from pipeline_tasks.errors import JobLost, LibraryMissing
from pipeline_tasks.seams import REFINERY

UNICODE = "unicode"
"""The name of Python's tables of characters among libraries: they come with Python, and decide what a letter is."""

Libraries = Mapping[str, str]
"""Versions of libraries by the names of their distributions, in order."""


EXTRAS = {
    "airflow": "airflow",
    "deltalake": "tables",
    "duckdb": "sql",
    "great_expectations": "gates",
    "httpx": "sources",
    "lance": "vectors",
    "obstore": "clouds",
    "onnxruntime": "onnx",
    "pandas": "gates",
    "psycopg2": "postgres",
    "pyiceberg": "tables",
    "pypdfium2": "files",
    "pyspark": "spark",
    "ray": "ray",
    "scipy": "study",
    "spacy": "entities",
    "torch": "models",
    "transformers": "models",
    "umap": "map",
    "vl_convert": "plots",
}
"""The extras that bring modules which the core can do without; `text` brings all others."""


def way_to(module: str) -> str:
    """Return that a module is not installed, and with which extra it is."""
    extra = EXTRAS.get(module.partition(".")[0], "text")
    way_out = f"install the package with its extra `{extra}`: pip install '.[{extra}]' in a checkout"
    return f"{module} is not installed here; {way_out}"


def installed(names: Iterable[str]) -> dict[str, str]:
    """Return the versions that are installed here; LibraryMissing names one that is not."""
    versions = {name: _version(name) for name in sorted(names)}
    for name, known in versions.items():
        if not known:
            message = (
                f"{name} is not installed here, whose version is identity; install it, as on the machine that planned "
                "the stage; what Refinery needs comes with its extra `refine`"
            )
            raise LibraryMissing(message)
    return versions


def present(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of those that are installed here."""
    return {name: known for name in sorted(names) if (known := _version(name))}


@cache
def _version(name: str) -> str:
    """Return the version of a library, "" of one that is not installed."""
    if name == UNICODE:
        return unicodedata.unidata_version
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def release() -> str:
    """Return the installed release of Refinery, "" where its code is not installed as a distribution."""
    return _version(REFINERY)


def require_same(planned: Libraries, here: Libraries, where: str) -> None:
    """Raise JobLost unless a machine has the versions by which a stage was planned: its rows could be others.

    Another machine may have them, and so may this one after its upgrade: the work is tried again.
    """
    others = differences(planned, here)
    if others:
        message = (
            f"{where} has other libraries than the stage was planned by: {', '.join(others)}; install the same release "
            "of Refinery and of its requirements on every machine. Nothing of this task was written"
        )
        raise JobLost(message)


def differences(before: Libraries, now: Libraries) -> list[str]:
    """Return each library whose version differs, as people read it: `ftfy 6.3.0 → 6.3.1`."""
    names = sorted({*before, *now})
    return [f"{name} {_said(before, name)} → {_said(now, name)}" for name in names if before.get(name) != now.get(name)]


def _said(versions: Libraries, name: str) -> str:
    return versions.get(name) or "none"
