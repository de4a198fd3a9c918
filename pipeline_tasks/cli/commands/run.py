"""`refinery run` refines one snapshot, and builds a training dataset, in this process."""

import argparse

from pipeline_tasks.flow import running
from pipeline_tasks.inspect.command import (
    DEFAULT_RECIPE,
    add_output_root,
    add_partitions,
    add_refining,
    number,
    overrides_of,
)
from pipeline_tasks.recipe import recipe_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the input, the output, and how to refine."""
    parser.add_argument(
        "--input", required=True, help="folder, prefix or file of WARC, WET, JSONL, Parquet or documents"
    )
    add_output_root(parser, "root to write to: a folder, or s3://, gs:// or az://bucket/prefix")
    parser.add_argument(
        "--snapshot", default="", help="its name (default: that in snapshot.json, else the last part of --input)"
    )
    parser.add_argument("--recipe", default=DEFAULT_RECIPE, help=f"one of {', '.join(recipe_names())}, or a YAML file")
    parser.add_argument(
        "--sample",
        type=number(float, 0, 1, above=True),
        default=1.0,
        metavar="SHARE",
        help="a trial: read this share of the bytes, in whole files, and keep what comes of it as RECIPE.trial",
    )
    exclusive = parser.add_mutually_exclusive_group()
    exclusive.add_argument(
        "--build",
        default="",
        metavar="RECIPE",
        help="build by this recipe afterwards, a name or a YAML file (default: that of the recipe's versions)",
    )
    exclusive.add_argument("--no-build", action="store_true", help="end with the documents of the snapshot")
    parser.add_argument(
        "--text-field",
        default="",
        metavar="NAME",
        help="field or column of the text in JSONL and Parquet (default: the recipe's, else text, content, raw_content "
        "or contents)",
    )
    add_partitions(parser)
    add_refining(parser)
    parser.add_argument("--json", action="store_true", help="end with one JSON object")


def answer(options: argparse.Namespace) -> int:
    """Refine the snapshot; return the exit code."""
    request = running.RunOptions(
        input=options.input,
        root=options.root,
        snapshot=options.snapshot,
        recipe=options.recipe,
        partitions=options.partitions,
        engine=options.engine,
        override=overrides_of(options),
        sample=options.sample,
        build=options.build,
        builds=not options.no_build,
        text_field=options.text_field,
    )
    return running.run(request, json_summary=options.json)
