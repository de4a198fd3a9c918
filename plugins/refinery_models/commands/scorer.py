"""Check a model that scores documents, before it may decide."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_tasks.cli.whole_file import write_whole
from pipeline_tasks.errors import GateRefused, RecipeError
from pipeline_tasks.inspect.command import add_json, number, print_result

if TYPE_CHECKING:
    from refinery_models.scorers.judges import Judge

TEXTS = 2_000
"""Texts of a sample unless another number is named."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the model, the sample, and the report."""
    parser.add_argument("model", nargs="?", default="", help="file of a fastText model, or a model's folder")
    parser.add_argument(
        "--classifier-of",
        default="",
        metavar="RECIPE[:NAME]",
        help="in place of a model: a classifier of a recipe with its params, or without NAME the recipe's whole score",
    )
    parser.add_argument("--card", default=None, help="the published classifier whose params hold")
    parser.add_argument("--label", default=None, help="the label whose probability is the score")
    parser.add_argument(
        "--sample",
        nargs="+",
        required=True,
        metavar="TEXTS",
        help="files of records (.jsonl, .parquet) with `text`, `language`, `url` or `source`, `type`, `label`; or "
        "ROOT, ROOT@SNAPSHOT, ROOT@RECIPE:SNAPSHOT",
    )
    parser.add_argument(
        "--texts", type=number(int, 10), default=TEXTS, metavar="N", help=f"texts that are drawn ({TEXTS:,})"
    )
    parser.add_argument("--seed", type=number(int, 0), default=1, metavar="N", help="the seed they are drawn by (1)")
    parser.add_argument(
        "--to",
        "--output",
        dest="output",
        default="",
        metavar="FILE",
        help="file of the report (default: the model's, and .check.json)",
    )
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Check, write the report and print it; return GateRefused's exit code if a bound refuses the model."""
    from pipeline_tasks.sealed import seal
    from refinery_models.scorers.check import check
    from refinery_models.scorers.lines import check_lines
    from refinery_models.scorers.texts import read_texts

    judge = _judge(options)
    texts, inputs = read_texts(options.sample, options.texts, options.seed)
    report = check(judge, texts, inputs, options.seed)
    path = options.output or _beside(options)
    write_whole(Path(path), seal(report))
    facts = asdict(report)
    print_result(options, {**facts, "report": path}, [*check_lines(facts), f"report: {path}"])
    return GateRefused.exit_code if report.outcome == "refuse" else 0


def _judge(options: argparse.Namespace) -> "Judge":
    from pipeline_tasks.scorers.classifier import Classifier
    from pipeline_tasks.stage import FilePath
    from pipeline_tasks.store.files import digest_of_named, localize
    from refinery_models.scorers.judges import of_classifier, of_recipe

    if bool(options.model) == bool(options.classifier_of):
        message = "name a MODEL, or a classifier by --classifier-of RECIPE:NAME, and not both"
        raise RecipeError(message)
    if options.classifier_of:
        return of_recipe(options.classifier_of)
    try:
        local = localize(options.model, digest_of_named(options.model))
    except FileNotFoundError as error:
        message = f"there is no model {options.model}; correct the path"
        raise RecipeError(message) from error
    return of_classifier(Classifier(FilePath(local), card=options.card, label=options.label))


def _beside(options: argparse.Namespace) -> str:
    if options.model and "://" not in options.model:
        return f"{options.model.rstrip('/')}.check.json"
    message = "--to is required: a file for the report"
    raise RecipeError(message)
