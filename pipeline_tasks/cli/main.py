"""The `refinery` command: refine a snapshot, inspect what is published, and keep a root in order."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from pipeline_tasks.cli.supervisor import INTERRUPTED, supervised
from pipeline_tasks.errors import RecipeError, RefineryError


class Entry(NamedTuple):
    """A command's module below `pipeline_tasks`, its line in `refinery --help`, and whether it starts processes."""

    module: str
    help: str
    supervised: bool = False


class Command(Protocol):
    """What a command's module offers. It is imported only when its command runs, so `--help` stays fast."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments."""

    def answer(self, options: argparse.Namespace) -> int:
        """Run the command and print its result; return the exit code."""


COMMANDS = {
    "run": Entry("cli.commands.run", "refine one snapshot and build from it, in this process", supervised=True),
    "pull": Entry("cli.commands.pull", "pull a snapshot from a source into a landing: whole, or not at all"),
    "sources": Entry("inspect.sources", "list sources: what has landed of each, what has not ended, who refuses"),
    "build": Entry("cli.commands.build", "build a training dataset from published snapshots", supervised=True),
    "export": Entry(
        "cli.commands.export", "write a training dataset in the format of another trainer", supervised=True
    ),
    "demo": Entry("demo.show", "write two small crawl snapshots, refine both, compare with the truth", supervised=True),
    "up": Entry("cli.commands.up", "start Airflow's web UI on this machine with everything embedded", supervised=True),
    "airflow": Entry("cli.commands.airflow", "run Airflow's own command on the Airflow of `refinery up`"),
    "status": Entry(
        "inspect.versions.status", "list snapshots: published, retracted, stale, and those whose run stopped"
    ),
    "access": Entry("inspect.access", "list who saw texts: the looks of pages, and of commands at a shared root"),
    "versions": Entry("inspect.versions", "list every published version, and whether it still counts"),
    "diff": Entry("inspect.diff", "compare two versions: settings, rows, distributions, documents by id"),
    "funnel": Entry("inspect.funnel", "documents, bytes and reasons from stage to stage"),
    "breakdown": Entry("inspect.breakdown", "documents kept and rejected by type, topic or any column, or by two"),
    "report": Entry("inspect.report", "print the path of a snapshot's report"),
    "verify": Entry("inspect.verify", "re-check every digest, and that every record is accounted for"),
    "sign": Entry(
        "cli.commands.sign", "sign what a version delivers and what it was made from, as an in-toto statement"
    ),
    "disclose": Entry(
        "inspect.disclose", "write what a version was made of: the EU's summary, a datasheet, Croissant, SPDX"
    ),
    "plan": Entry("inspect.plan", "plan a training run: bytes to crawl, cores, storage, money, rate of the loader"),
    "trace": Entry("inspect.document.trace", "trace a packed token back to its document and landed record"),
    "lineage": Entry("inspect.versions.lineage", "show the manifests that a version was made from, with their parents"),
    "find": Entry("inspect.search.find", "find every place where a document, URL or site is used in training datasets"),
    "search": Entry("inspect.search", "list the documents of a snapshot whose text has a phrase, or by columns"),
    "similar": Entry("inspect.search.similar", "find the published documents that are most like a document or a text"),
    "map": Entry(
        "cli.commands.map", "draw a version's documents as points, near by their vectors, colored by any column"
    ),
    "document": Entry("inspect.document", "show every decision on a document: signals, reasons, evidence, record"),
    "takedown": Entry(
        "cli.commands.takedown",
        "take documents, URLs or sites out of training datasets, and refuse them",
        supervised=True,
    ),
    "erase": Entry("cli.commands.erase", "complete takedowns: erase the documents below a root", supervised=True),
    "read": Entry("inspect.read", "read documents that were kept and rejected, judge them, and see what that says"),
    "intruder": Entry("inspect.intruder", "find the foreign one of five documents: whether groups have much in common"),
    "rejects": Entry("inspect.rejects", "count or export the rows that a stage rejected"),
    "sql": Entry("inspect.sql", "query by SQL the verified rows of a version: kept, rejected, stages, lineage"),
    "redactions": Entry("inspect.redactions", "count and place personal data or words that offend, without the values"),
    "duplicates": Entry(
        "inspect.document.duplicates", "show a document's cluster: which document is kept, and the proof"
    ),
    "contamination": Entry("inspect.contamination", "list evaluation items in snapshots, or look for a new benchmark"),
    "whatif": Entry("inspect.whatif", "predict what other bounds, or conditions on columns, would keep"),
    "lint": Entry(
        "inspect.lint",
        "find what in a recipe is wrong or without effect, and what of a snapshot will not fit",
    ),
    "fetch": Entry(
        "cli.commands.fetch", "fetch public evaluation sets or URL lists, pinned, for decontaminate or filter_url"
    ),
    "train-lm": Entry("cli.commands.train_lm", "train a language's n-gram model on trusted text, for score_quality"),
    "train-quality-model": Entry(
        "cli.commands.train_quality_model",
        "train a model of the quality of texts on good ones and a crawl, for score_quality",
    ),
    "train-extractor": Entry(
        "cli.commands.train_extractor", "train the model that reads a page's blocks on pages whose text people marked"
    ),
    "train-topics": Entry(
        "cli.commands.train_topics", "find what texts are about, by their vectors, for the stage topics"
    ),
    "scorer": Entry("cli.commands.scorer", "check a model that scores documents, before it may decide"),
    "ablate": Entry(
        "cli.commands.ablate", "train small models on two recipes or datasets: which is better, how sure, at what price"
    ),
    "mixture": Entry(
        "cli.commands.mixture",
        "search the mixture of a dataset's groups that gives the best models, by many small ones",
    ),
    "lsh-curve": Entry("inspect.lsh_curve", "compute the probability that bands and rows make a pair a candidate"),
    "retract": Entry("upkeep.retract", "make the dataset what it would be without a snapshot", supervised=True),
    "vacuum": Entry("upkeep.vacuum", "list (with --delete, remove) files that no manifest names", supervised=True),
    "retention": Entry(
        "upkeep.retention.command",
        "list (with --apply, do) what a policy says of how long objects are kept, and in which class",
        supervised=True,
    ),
    "index": Entry(
        "upkeep.index", "bring the store of vectors in line with what is published, for `similar`", supervised=True
    ),
    "compact": Entry(
        "upkeep.compact", "merge the history of many snapshots, so that a run reads fewer files", supervised=True
    ),
    "upgrade": Entry("upkeep.upgrade", "say what an installed release makes outdated, why, and what it costs"),
    "compile": Entry(
        "cli.commands.compile", "compile the loops over text for this machine, so that no task has to", supervised=True
    ),
    "ledger": Entry("upkeep.ledger", "make the ledger anew from the root"),
    "new": Entry("cli.commands.new", "write a package with a stage, filter, source or export of your own"),
    "doctor": Entry("upkeep.doctor", "check Java, Spark, Ray, the tokenizer and the object store", supervised=True),
}

SHOWING = frozenset(
    {"breakdown", "contamination", "document", "duplicates", "export", "find", "intruder", "map"}
    | {"read", "redactions", "rejects", "search", "similar", "sql", "trace"}
)
"""Commands that show texts, or names of pages: they log their looks at a shared root."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; an error is one paragraph on stderr, and the exit code is its class.

    Without `arguments` it is the command of this process, and supervised if it starts processes.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if arguments is None and _is_supervised(given):
        return _reported(partial(supervised, partial(_reported, partial(_run, given), given)), given)
    try:
        return _reported(partial(_run, given), given)
    except KeyboardInterrupt:
        sys.stderr.write("refinery: stopped\n")
        return INTERRUPTED


def _reported(work: Callable[[], int], arguments: Sequence[str]) -> int:
    try:
        return work()
    except RefineryError as error:
        if "--debug" in arguments:
            raise
        sys.stderr.write(f"refinery: {error}\n")
        return error.exit_code
    except ModuleNotFoundError as error:
        if "--debug" in arguments or error.name is None or error.name.startswith("pipeline_tasks"):
            raise
        way_out = "install the package with its extra `refine`: pip install '.[refine]' in a checkout"
        sys.stderr.write(f"refinery: {error.name} is not installed here; {way_out}\n")
        return RecipeError.exit_code
    except BrokenPipeError:  # `refinery status | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # the machine's own failures come as errors of any library
        from pipeline_tasks.run.machine import named

        refusal = named(error)
        if refusal is None or "--debug" in arguments:
            raise
        sys.stderr.write(f"refinery: {refusal}\n")
        return refusal.exit_code


def _is_supervised(arguments: Sequence[str]) -> bool:
    name = _command(arguments)
    return name in COMMANDS and COMMANDS[name].supervised and not {"-h", "--help"} & set(arguments)


def _run(arguments: Sequence[str]) -> int:
    _require_command(_command(arguments))
    parser = build_parser({_command(arguments)} & COMMANDS.keys())
    options = _parse(parser, arguments)
    if options.version:
        from pipeline_tasks.libraries import release

        sys.stdout.write(f"refinery {release()}\n")
        return 0
    if options.command is None:
        parser.print_help()
        return 0
    _check_root(options)
    return _module(options.command).answer(options)


def _command(arguments: Sequence[str]) -> str:
    return next((word for word in arguments if not word.startswith("-")), "")


def _require_command(name: str) -> None:
    """Raise RecipeError for a command that does not exist, with the nearest that does."""
    if name and name not in COMMANDS:
        near = get_close_matches(name[:40], COMMANDS, n=1, cutoff=0.6)
        suggestion = f" (did you mean {near[0]!r}?)" if near else ""
        message = f"there is no command {name[:40]!r}{suggestion}; commands are: {', '.join(COMMANDS)}"
        raise RecipeError(message)


def _check_root(options: argparse.Namespace) -> None:
    """Raise RecipeError if the command reads a root, and there is none at ROOT."""
    if getattr(options, "requires_root", False):
        from pipeline_tasks.store.storage import require_root

        require_root(options.root)


def build_parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return a parser of all commands; only those in `names` are imported and get their arguments."""
    parser = argparse.ArgumentParser(prog="refinery", description=__doc__)
    parser.add_argument("--debug", action="store_true", help="show the stack trace of an error")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="", dest="command")
    parsers = {
        name: commands.add_parser(name, help=entry.help, description=entry.help) for name, entry in COMMANDS.items()
    }
    for name in names:
        _module(name).add_arguments(parsers[name])
        if name in SHOWING:
            from pipeline_tasks.inspect.looks import add_purpose

            add_purpose(parsers[name])
    return parser


def _module(name: str) -> Command:
    return cast("Command", import_module(f"pipeline_tasks.{COMMANDS[name].module}"))


def _parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse; ROOT, or a query behind it, may follow options, as in `retract DAY --dry-run ROOT`.

    argparse gives an optional positional its default as soon as the one before it is read, and ignores it later.
    """
    options, rest = parser.parse_known_args(arguments)
    if len(rest) == 1 and not rest[0].startswith("-") and _has_default_root(options):
        options.root = rest.pop()
    if len(rest) == 1 and not rest[0].startswith("-") and getattr(options, "query", None) == "":
        options.query = rest.pop()
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def _has_default_root(options: argparse.Namespace) -> bool:
    from pipeline_tasks.inspect.command import default_root

    return getattr(options, "root", None) == default_root()
