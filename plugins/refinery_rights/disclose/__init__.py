"""Writes what a version was made of, for who has to show it: the EU's summary, a datasheet, Croissant and SPDX.

Everything follows from the root and the provider's file: the same version gives the same bytes.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_chosen, chosen_of, outside, print_result
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.sealed import sha256
from refinery_rights.disclose.about import About, read_about
from refinery_rights.disclose.croissant import croissant
from refinery_rights.disclose.datasheet import KEYS, datasheet
from refinery_rights.disclose.facts import Facts, collected
from refinery_rights.disclose.page import Page, html, markdown
from refinery_rights.disclose.spdx import spdx
from refinery_rights.disclose.summary import DOMAINS, summary

SUMMARY, DATASHEET, CROISSANT, SPDX = "summary", "datasheet", "croissant.json", "spdx.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the version, the provider's file, and where the files go."""
    add_chosen(parser)
    parser.add_argument(
        "--to", "--out", dest="out", required=True, metavar="FOLDER", help="an empty folder for the files"
    )
    parser.add_argument("--about", default="", metavar="FILE", help="YAML with what only the provider knows")


def answer(options: argparse.Namespace) -> int:
    """Write the files, and print what each is and how many questions are open."""
    about = read_about(options.about, KEYS)
    version = chosen_of(options)
    out = Path(outside(options.out, options.root, "--to"))
    written = disclose(options.root, version, about, out)
    print_result(options, written, _lines(out, written))
    return 0


def disclose(root: str, version: Version, about: About, out: Path) -> dict[str, Any]:
    """Write the files of a version into an empty folder; return their digests and the questions that are open.

    RecipeError for a folder that has files, ContractError where the root is not as it was committed.
    """
    _require_empty(out)
    with collected(root, version, about) as facts:
        pages = {SUMMARY: summary(facts), DATASHEET: datasheet(facts)}
        bodies = dict(_bodies(facts, pages))
        _make(out)
        for name, body in bodies.items():
            (out / name).write_bytes(body)
        lists = list(_write_domains(facts, out))
        names = sorted([*bodies, *lists])
        return {
            "version": version.number,
            "recipe": version.recipe,
            "files": {name: sha256((out / name).read_bytes()) for name in names},
            "not_given": {name: page.missing for name, page in pages.items()},
            "unused_sources": _unused(facts),
            "documents": facts.total.documents,
            "bytes": facts.total.bytes,
            "tokens": facts.version.tokens,
        }


def _unused(facts: Facts) -> dict[str, list[str]]:
    """Return what the provider's file calls sources and no source is called, each with the names of those there are."""
    known = {name for origin in facts.origins for name in origin.names if name}
    return {name: sorted(known) for name in sorted(set(facts.about.sources) - known - {"*"})}


def _bodies(facts: Facts, pages: Mapping[str, Page]) -> Iterator[tuple[str, bytes]]:
    for name, page in pages.items():
        yield f"{name}.md", markdown(page)
        yield f"{name}.html", html(page)
        yield f"{name}.json", _json(page.facts())
    yield CROISSANT, _json(croissant(facts))
    yield SPDX, _json(spdx(facts))


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"


def _write_domains(facts: Facts, out: Path) -> Iterator[str]:
    """Write every domain that the template asks for, by list of sources; yield the names of the files."""
    for category, (snapshots, domains) in facts.domains.items():
        name = DOMAINS.format(category=category)
        facts.counts.write_domains(snapshots, domains.listed, out / name)
        yield name


def _require_empty(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        message = f"{out} is there and not an empty folder; name another one by --to"
        raise RecipeError(message)


def _make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"{out} cannot be made ({error.strerror}); name another folder by --to"
        raise RecipeError(message) from error


FORMATS: Mapping[str, str] = {
    "summary.md": "the EU's template for the public summary of training content",
    "datasheet.md": "datasheet",
    CROISSANT: "Croissant 1.1",
    SPDX: "SPDX 3.0.1, Dataset profile",
}


def _lines(out: Path, written: Mapping[str, Any]) -> Iterator[str]:
    for name in written["files"]:
        yield f"{out / name}{f'  {FORMATS[name]}' if name in FORMATS else ''}"
    tokens = f", {counted(written['tokens'], 'token')} in training" if written["tokens"] else ""  # a snapshot has none
    yield f"{counted(written['documents'], 'document')} with {written['bytes']:,} bytes of text{tokens}"
    for name, known in written["unused_sources"].items():
        yield f"sources: {name!r} is no source of this version; its sources are called {', '.join(known)}"
    for name, missing in written["not_given"].items():
        yield f"{name}: {counted(missing, 'question')} without an answer; --about FILE gives those of the provider"
