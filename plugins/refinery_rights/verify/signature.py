"""Gives `refinery verify` the options of a signed statement; what reads it is imported when one is named."""

import argparse

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.command import print_result
from pipeline_tasks.inspect.verify import finding_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the statement and the key to the options of `refinery verify`."""
    parser.add_argument(
        "--signature",
        default="",
        metavar="FILE",
        help="a statement of `refinery keep sign`: is that what is there?",
    )
    parser.add_argument("--key", default="", metavar="FILE", help="the public key (PEM) of who signed it")


def answer(options: argparse.Namespace) -> int | None:
    """Print what the root is against a signed statement; RecipeError unless statement and key are both named, or none.

    Without them it is None.
    """
    if not (options.signature or options.key):
        return None
    if not (options.signature and options.key):
        message = "--signature and --key go together: the statement, and the public key of who signed it"
        raise RecipeError(message)
    from refinery_rights.statements.keys import public_key
    from refinery_rights.verify.statements import (
        check_statement,
        statement_conclusion,
        statement_facts,
        statement_lines,
    )

    checked = check_statement(options.root, options.signature, public_key(options.key), full=not options.fast)
    findings = checked.findings
    lines = [*statement_lines(checked), *finding_lines(findings), statement_conclusion(checked)]
    print_result(options, statement_facts(checked), lines)
    return ContractError.exit_code if findings.problems else 0
