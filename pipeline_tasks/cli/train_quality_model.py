"""Train a model that scores texts by their likeness to good ones, for `score_quality`, and compare it with another."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_tasks.cli.whole_file import write_whole
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_json, number, print_result

if TYPE_CHECKING:
    from pipeline_tasks.inspect.scorers.judges import Judge

TEXTS = 50_000
"""Texts of each label unless another number is named."""

SHOWN = 5
"""Documents that moved most, as they are shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add good texts and others, the kind of model, and the model to compare with."""
    what = "files of records (.jsonl, .parquet) with `text`, `language`, `url`; or ROOT, ROOT@SNAPSHOT"
    parser.add_argument("--positives", nargs="+", required=True, metavar="TEXTS", help=f"good texts: {what}")
    parser.add_argument(
        "--negatives",
        nargs="+",
        default=[],
        metavar="TEXTS",
        help="texts of a crawl: the same (default: nonsense that is made of the good texts)",
    )
    parser.add_argument("--output", required=True, help="the model's file, or folder; it must not exist")
    parser.add_argument(
        "--embeddings", default="", metavar="FOLDER", help="train a head over these static embeddings, and no fastText"
    )
    parser.add_argument(
        "--texts", type=number(int, 20), default=TEXTS, metavar="N", help=f"most texts of each kind ({TEXTS:,})"
    )
    parser.add_argument("--seed", type=number(int, 0), default=1, metavar="N", help="the seed they are drawn by (1)")
    parser.add_argument(
        "--against",
        default="",
        metavar="OLD",
        help="compare on the held-out texts: a model of this command, RECIPE:NAME, or a recipe's whole score",
    )
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Train, write the model and its report, and print what it tells apart."""
    from pipeline_tasks.inspect.scorers.training import gather, train
    from pipeline_tasks.sealed import seal

    output = Path(options.output)
    if output.exists():
        message = f"--output {output} exists; name a new one, as recipes may name this one"
        raise RecipeError(message)
    old = _old(options.against) if options.against else None
    examples = gather(options.positives, options.negatives, options.texts, options.seed)
    report = train(examples, options.embeddings, output, old, options.seed)
    beside = Path(f"{output}.training.json")
    write_whole(beside, seal(report))
    facts = asdict(report)
    print_result(options, {**facts, "output": str(output), "report": str(beside)}, report_lines(facts, str(output)))
    return 0


def _old(named: str) -> "Judge":
    """Return the scorer to compare with; RecipeError if there is none."""
    from pipeline_tasks.inspect.scorers.judges import of_classifier, of_recipe
    from pipeline_tasks.scorers.classifier import Classifier
    from pipeline_tasks.scorers.training import HIGH
    from pipeline_tasks.stage import FilePath

    path = Path(named)
    if not path.exists() or named.endswith((".yaml", ".yml")):
        return of_recipe(named)
    return of_classifier(Classifier(FilePath(named), label=HIGH if path.is_dir() else f"__label__{HIGH}"))


def report_lines(report: Mapping[str, Any], output: str) -> Iterator[str]:
    """Yield a report as people read it."""
    texts, sites = report["texts"], report["sites"]
    yield f"{output}: {report['kind']} {report['model'][:12]}, label {report['label']}"
    yield (
        f"trained on {texts['good_trained']:,} good texts and {texts['other_trained']:,} others of "
        f"{sites['trained']:,} sites; {texts['good_held_out']:,} and {texts['other_held_out']:,} of "
        f"{sites['held_out']:,} other sites are held out"
    )
    if not report["is_matched"]:
        yield "good texts name no language, so languages are not matched: the model may have learned a language"
    yield f"AUC on held-out sites {_figures(report['held_out'])}"
    yield f"AUC on what it was trained on {_figures(report['trained'])}"
    for code, figures in report["by_language"].items():
        yield f"  {code or '?'}: {_figures(figures)}"
    if report["against"]:
        yield from _comparison(report["against"])


def _comparison(against: Mapping[str, Any]) -> Iterator[str]:
    agreement = "-" if against["agreement"] is None else f"{against['agreement']:.3f}"
    yield (
        f"against {against['old'][:12]}: rank agreement {agreement}, mean shift {against['shift']:+.3f}, "
        f"{against['moved_share']:.1%} of {against['documents']:,} documents moved by a quarter; its AUC is "
        f"{_figures(against['held_out'])}"
    )
    for moved in against["moved"][:SHOWN]:
        yield f"  {moved['id']} ({moved['source'] or 'no site'}): from {moved['from']:.2f} to {moved['to']:.2f}"


def _figures(figures: list[float]) -> str:
    if not figures:
        return "-"
    value, low, high, pairs = figures
    return f"{value:.3f} [{low:.3f}, {high:.3f}] of {pairs:,.0f} pairs"
