"""Train the model by which `extract` reads a page's blocks, on pages whose text people marked."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline_tasks.cli.whole_file import replace_whole
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_json, number, print_lines, print_result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the pages, the file to write, what the card says of them, and how the model is trained."""
    parser.add_argument(
        "pages",
        nargs="+",
        metavar="PAGES",
        help="files (.parquet, .jsonl): `id`, `url`, `html`, `main_content`; also `page_type`, `language`, `weight`",
    )
    parser.add_argument(
        "--to", "--output", dest="output", required=True, metavar="FILE", help="file to write; it must not exist"
    )
    parser.add_argument(
        "--notice",
        action="append",
        default=[],
        metavar="TEXT",
        help="a licence or attribution of the pages, for the card; once for each",
    )
    parser.add_argument("--trees", type=number(int, 1, 2_000), default=300, metavar="N", help="trees (300)")
    parser.add_argument("--leaves", type=number(int, 2, 255), default=31, metavar="N", help="leaves of a tree (31)")
    parser.add_argument("--seed", type=number(int, 0), default=1, metavar="N", help="the seed of the training (1)")
    parser.add_argument(
        "--folds",
        type=number(int, 0, 20),
        default=5,
        metavar="N",
        help="parts of the sites that are held out in turn for the report; 0 or 1: no report (5)",
    )
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Train on all pages, write the model, and print what models of the other sites choose on each site's pages."""
    from pipeline_tasks.text.blocks.model import dump_model
    from refinery_models.extractor.lines import report_lines
    from refinery_models.extractor.pages import read_pages
    from refinery_models.extractor.training import Settings, held_out_report, installed_trainer, train

    output = Path(options.output)
    if output.exists():
        message = f"--to {output} exists; name a new file, as recipes may name this one"
        raise RecipeError(message)
    installed_trainer()
    pages, inputs = read_pages(options.pages)
    settings = Settings(options.trees, options.leaves, options.seed, options.folds)
    card: dict[str, Any] = {
        "data": {Path(path).name: digest for path, digest in inputs.items()},
        "notices": options.notice,
    }
    if settings.folds > 1:
        say = (lambda _: None) if options.json else (lambda line: print_lines([line]))
        card["report"] = asdict(held_out_report(pages, settings, say))
    model = train(pages, settings, card)
    content = dump_model(model)
    replace_whole(output, content)
    facts = {**model.card, "output": str(output)}
    print_result(options, facts, report_lines(model.card, str(output), len(content)))
    return 0
