"""Generate the pages of `docs/reference/` from cards, docstrings, suites and parsers, and the outputs that pages show.

`python -m pipeline_tasks.cli.reference` writes all pages of `docs/reference/`. With `--outputs` it also runs the
commands whose outputs pages show, and writes what has changed in them; that takes minutes, as it runs the demo. Tests
compare both with the code.
"""

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pipeline_tasks.cli.reference.engines import engines_page
from pipeline_tasks.cli.reference.exports import exports_page
from pipeline_tasks.cli.reference.filters import filters_page
from pipeline_tasks.cli.reference.gates import gates_page
from pipeline_tasks.cli.reference.options import options_page
from pipeline_tasks.cli.reference.outputs import outputs_of
from pipeline_tasks.cli.reference.stages import stages_page
from pipeline_tasks.cli.reference.walk import renewed
from pipeline_tasks.shipped import PACKAGE, checkout

DOCS = PACKAGE.parent / "docs"
FOLDER = DOCS / "reference"

PAGES: Mapping[str, Callable[[], str]] = {
    "stages.md": stages_page,
    "filters.md": filters_page,
    "gates.md": gates_page,
    "engines.md": engines_page,
    "options.md": options_page,
    "exports.md": exports_page,
}
"""The generated pages by file name."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write all generated pages; with `--outputs`, the outputs of commands, too. RecipeError outside of a checkout."""
    parser = argparse.ArgumentParser(prog="python -m pipeline_tasks.cli.reference", description=__doc__)
    parser.add_argument(
        "--outputs",
        nargs="?",
        const="",
        metavar="FOLDER",
        help="also run the commands whose outputs pages show, in FOLDER (default: one that is removed); a demo that "
        "FOLDER has is not run again",
    )
    options = parser.parse_args(arguments)
    checkout()  # a wheel has no pages
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
    if options.outputs:
        write_outputs(Path(options.outputs).absolute())
    elif options.outputs is not None:
        with tempfile.TemporaryDirectory() as folder:
            write_outputs(Path(folder))


def pages_with_outputs() -> dict[str, str]:
    """Return the pages below `docs/` that show outputs of commands, by their path there."""
    pages = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
    return {name: page for name, page in pages.items() if outputs_of(page)}


def write_outputs(folder: Path) -> None:
    """Run the commands of every page in `folder`; write the pages whose outputs have changed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages_with_outputs().items():
        (DOCS / name).write_text(renewed(folder, name, page), encoding="utf-8")
