"""Train a model that scores texts by their likeness to good ones, for `score_quality`, and compare it with another."""

import argparse
from dataclasses import asdict
from pathlib import Path

from pipeline_tasks.cli.whole_file import write_whole, written_whole
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_json, number, print_lines, print_result

TEXTS = 50_000
"""Texts of each label unless another number is named."""

NAME = "quality"
"""The name of a published model unless another is named."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add good texts and others, the kind of model, where it goes, and the model to compare with."""
    what = "files of records (.jsonl, .parquet) with `text`, `language`, `url`; or ROOT, ROOT@SNAPSHOT"
    parser.add_argument("--positives", nargs="+", required=True, metavar="TEXTS", help=f"good texts: {what}")
    parser.add_argument(
        "--negatives",
        nargs="+",
        default=[],
        metavar="TEXTS",
        help="texts of a crawl: the same (default: nonsense that is made of the good texts)",
    )
    parser.add_argument(
        "--to",
        "--output",
        dest="output",
        default="",
        metavar="PLACE",
        help="the model's file, or folder; it must not exist",
    )
    parser.add_argument(
        "--root",
        default="",
        metavar="ROOT",
        help="in place of --to: check the model, and publish it below this root as --name",
    )
    parser.add_argument("--name", default=NAME, help=f"the name of the published model ({NAME})")
    parser.add_argument(
        "--sample",
        nargs="+",
        default=[],
        metavar="TEXTS",
        help="with --root: what it is checked on, as in `model check` (default: the negatives, else the positives)",
    )
    parser.add_argument(
        "--accepted", default="", metavar="WHY", help="with --root: why it is published although its check refuses it"
    )
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
        help="compare on the held-out texts: a model of this command, RECIPE:NAME, or a recipe's whole score (default: "
        "with --root the model of the same name that was published last)",
    )
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Train a model and print what it tells apart; write it with its report, or check and publish it below a root."""
    if bool(options.output) == bool(options.root):
        message = "name --to, a file or folder, or --root, below which the model is published, and not both"
        raise RecipeError(message)
    return _published(options) if options.root else _written(options)


def _written(options: argparse.Namespace) -> int:
    from pipeline_tasks.sealed import seal
    from refinery_models.scorers.judges import of_trained
    from refinery_models.scorers.lines import training_lines
    from refinery_models.scorers.training import gather, train

    output = Path(options.output)
    if output.exists():
        message = f"--to {output} exists; name a new one, as recipes may name this one"
        raise RecipeError(message)
    old = of_trained(options.against) if options.against else None
    examples = gather(options.positives, options.negatives, options.texts, options.seed)
    beside = Path(f"{output}.training.json")
    with written_whole(output) as temporary:
        report = train(examples, options.embeddings, temporary, lambda _: old, options.seed)
        write_whole(beside, seal(report))  # first: a model that is there has a report
    facts = asdict(report)
    print_result(options, {**facts, "output": str(output), "report": str(beside)}, training_lines(facts, str(output)))
    return 0


def _published(options: argparse.Namespace) -> int:
    """Do what the tasks of the DAG `train_quality_model` do, one after the other."""
    from pipeline_tasks.service.handle import handle
    from pipeline_tasks.service.requests.wire import decode

    about = {"root": options.root, "name": options.name}
    sources = {name: getattr(options, name) for name in ("positives", "negatives", "embeddings", "against")}
    drawn = {"texts": options.texts, "seed": options.seed}
    trained = handle(decode({"verb": "train_model", **about, **sources, **drawn}))
    print_lines([] if options.json else trained["lines"])
    model = {name: trained[name] for name in ("model", "label")}
    sample = options.sample or options.negatives or options.positives
    accepted = {"accepted": options.accepted}
    asked = {"verb": "check_model", **about, **model, "sample": sample, "seed": options.seed, **accepted}
    checked = handle(decode(asked))
    print_lines([] if options.json else checked["lines"])
    reports = {"model": trained["model"], "training": trained["training"], "check": checked["check"]}
    published = handle(decode({"verb": "publish_model", **about, **reports, **accepted}))
    print_result(options, {**published, "outcome": checked["outcome"]}, published["lines"])
    return 0
