"""Gives `refinery verify` the option of a catalog; what compares it with the root is imported when one is named."""

import argparse

from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.command import on_of, print_result, recipe_of
from pipeline_tasks.inspect.verify import finding_lines
from pipeline_tasks.recipe import VERIFY


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the catalog to the options of `refinery verify`."""
    parser.add_argument(
        "--catalog",
        default="",
        metavar="CATALOG",
        help="iceberg:NAME or ducklake:PLACE: do its tables have what is published, and nothing else?",
    )


def answer(options: argparse.Namespace) -> int | None:
    """Print what a catalog has that the root has not published, or lacks; None without the option."""
    if not options.catalog:
        return None
    from pipeline_tasks.engines.each import HERE
    from refinery_exports.tables.catalogs import opened
    from refinery_exports.tables.comparing import compared_lines, findings_of
    from refinery_exports.tables.registering import plain_root, registered_recipes

    root = plain_root(options.root)
    recipes = [recipe_of(options)] if options.recipe else registered_recipes(root)
    on = on_of(VERIFY, "", options, HERE.workers)
    with opened(options.catalog) as catalog:
        findings = findings_of(root, recipes, catalog, on)
    facts = {"checked": findings.checked, "problems": [str(problem) for problem in findings.problems]}
    print_result(options, facts, [*finding_lines(findings), *compared_lines(options.catalog, findings)])
    return ContractError.exit_code if findings.problems else 0
