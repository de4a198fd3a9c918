"""Generate the pages of `docs/reference/` from cards, docstrings, suites and parsers.

`python -m pipeline_tasks.cli.reference` writes all pages. A test compares them with the code.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from pipeline_tasks.cli.reference.engines import engines_page
from pipeline_tasks.cli.reference.exports import exports_page
from pipeline_tasks.cli.reference.filters import filters_page
from pipeline_tasks.cli.reference.gates import gates_page
from pipeline_tasks.cli.reference.options import options_page
from pipeline_tasks.cli.reference.stages import stages_page

FOLDER = Path(__file__).parents[3] / "docs" / "reference"

PAGES: Mapping[str, Callable[[], str]] = {
    "stages.md": stages_page,
    "filters.md": filters_page,
    "gates.md": gates_page,
    "engines.md": engines_page,
    "options.md": options_page,
    "exports.md": exports_page,
}
"""The generated pages by file name."""


def main() -> None:
    """Write all pages."""
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
