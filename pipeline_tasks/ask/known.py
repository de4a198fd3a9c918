"""Says which questions there are: each is a command, with the module that answers it, and the group it is shown in."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import NamedTuple

from pipeline_tasks import seams
from pipeline_tasks.errors import RecipeError

SEAM = "refinery.questions"
"""The seam of questions: each of its parts is a dict of names and their `Entry`, in a module that imports little."""

GROUPS = ("refine", "look", "build", "keep in order", "people and rights", "models", "set up")
"""The groups of questions, in the order of `refinery --help`."""


class Entry(NamedTuple):
    """A question's module, its line in `refinery --help`, and its group.

    `supervised`: it starts processes. `shows`: it shows texts, or names of pages, and logs its looks at a shared root.
    `was`: the name that it had, to which it still answers.
    `is_question`: its module has a `QUESTION`, which is a page, too.
    """

    module: str
    help: str
    group: str
    supervised: bool = False
    shows: bool = False
    was: str = ""
    is_question: bool = False


QUESTIONS = {
    "run": Entry(
        "pipeline_tasks.cli.commands.run",
        "refine one snapshot and build from it, in this process",
        "refine",
        supervised=True,
    ),
    "whatif": Entry(
        "pipeline_tasks.inspect.whatif", "predict what other bounds, or conditions on columns, would keep", "refine"
    ),
    "lint": Entry(
        "pipeline_tasks.inspect.lint",
        "find what in a recipe is wrong or without effect, and what of a snapshot will not fit",
        "refine",
    ),
    "status": Entry(
        "pipeline_tasks.inspect.versions.status",
        "list snapshots: published, retracted, stale, and those whose run stopped",
        "look",
    ),
    "look versions": Entry(
        "pipeline_tasks.inspect.versions",
        "list every published version, and whether it still counts",
        "look",
        was="versions",
        is_question=True,
    ),
    "diff": Entry(
        "pipeline_tasks.inspect.diff", "compare two versions: settings, rows, distributions, documents by id", "look"
    ),
    "look funnel": Entry(
        "pipeline_tasks.inspect.funnel", "documents, bytes and reasons from stage to stage", "look", was="funnel"
    ),
    "look types": Entry(
        "pipeline_tasks.inspect.by_type",
        "say what became of the files of each type, from stage to stage",
        "look",
        is_question=True,
    ),
    "look report": Entry(
        "pipeline_tasks.inspect.report", "print the path of a snapshot's report", "look", was="report"
    ),
    "look trace": Entry(
        "pipeline_tasks.inspect.document.trace",
        "trace a packed token back to its document and landed record",
        "look",
        shows=True,
        was="trace",
    ),
    "look lineage": Entry(
        "pipeline_tasks.inspect.versions.lineage",
        "show the manifests that a version was made from, with their parents",
        "look",
        was="lineage",
        is_question=True,
    ),
    "look find": Entry(
        "pipeline_tasks.inspect.search.find",
        "find every place where a document, URL or site is used in training datasets",
        "look",
        shows=True,
        was="find",
    ),
    "why": Entry(
        "pipeline_tasks.inspect.why",
        "say why a page is in the dataset or not: its whole story, by address, id or words",
        "look",
        shows=True,
        is_question=True,
    ),
    "search": Entry(
        "pipeline_tasks.inspect.search",
        "list the documents of a snapshot whose text has a phrase, or by columns",
        "look",
        shows=True,
    ),
    "document": Entry(
        "pipeline_tasks.inspect.document",
        "show every decision on a document: signals, reasons, evidence, record",
        "look",
        shows=True,
    ),
    "rejects": Entry(
        "pipeline_tasks.inspect.rejects", "count or export the rows that a stage rejected", "look", shows=True
    ),
    "look redactions": Entry(
        "pipeline_tasks.inspect.redactions",
        "count and place personal data or words that offend, without the values",
        "look",
        shows=True,
        was="redactions",
    ),
    "look duplicates": Entry(
        "pipeline_tasks.inspect.document.duplicates",
        "show a document's cluster: which document is kept, and the proof",
        "look",
        shows=True,
        was="duplicates",
    ),
    "build": Entry(
        "pipeline_tasks.cli.commands.build",
        "build a training dataset from published snapshots",
        "build",
        supervised=True,
    ),
    "verify": Entry(
        "pipeline_tasks.inspect.verify",
        "re-check every digest, and that every record is accounted for",
        "keep in order",
    ),
    "retract": Entry(
        "pipeline_tasks.cli.commands.retract",
        "make the dataset what it would be without a snapshot",
        "keep in order",
        supervised=True,
    ),
    "keep vacuum": Entry(
        "pipeline_tasks.upkeep.vacuum",
        "list (with --apply, remove) files that no manifest names",
        "keep in order",
        supervised=True,
        was="vacuum",
    ),
    "keep retention": Entry(
        "pipeline_tasks.upkeep.retention.command",
        "list (with --apply, do) what a policy says of how long objects are kept, and in which class",
        "keep in order",
        supervised=True,
        was="retention",
    ),
    "keep compact": Entry(
        "pipeline_tasks.upkeep.compact",
        "merge the history of many snapshots, so that a run reads fewer files",
        "keep in order",
        supervised=True,
        was="compact",
    ),
    "keep upgrade": Entry(
        "pipeline_tasks.upkeep.upgrade",
        "say what an installed release makes outdated, why, and what it costs",
        "keep in order",
        was="upgrade",
        is_question=True,
    ),
    "keep ledger": Entry(
        "pipeline_tasks.upkeep.ledger",
        "make the ledger anew from the root, while no run writes to it",
        "keep in order",
        was="ledger rebuild",
    ),
    "keep access": Entry(
        "pipeline_tasks.inspect.access",
        "list who saw texts: the looks of pages, and of commands at a shared root",
        "keep in order",
        was="access",
        is_question=True,
    ),
    "demo": Entry(
        "pipeline_tasks.demo.show",
        "write two small crawl snapshots, refine both, compare with the truth",
        "set up",
        supervised=True,
    ),
    "setup compile": Entry(
        "pipeline_tasks.cli.commands.compile",
        "compile the loops over text for this machine, so that no task has to",
        "set up",
        supervised=True,
        was="compile",
    ),
    "new": Entry(
        "pipeline_tasks.cli.commands.new",
        "write a package with a stage, filter, source or export of your own",
        "set up",
    ),
    "setup doctor": Entry(
        "pipeline_tasks.upkeep.doctor",
        "check Java, Spark, Ray, the tokenizer and the object store",
        "set up",
        supervised=True,
        was="doctor",
    ),
}
"""The questions that the core answers, by name: a word, or two of which the first is shared (`keep vacuum`)."""


def entry_of(name: str) -> Entry | None:
    """Return the entry of a question, None if there is none; only for a name that is not the core's, seams are read."""
    return QUESTIONS.get(name) or questions().get(name)


def name_in(words: Sequence[str]) -> tuple[str, int]:
    """Return the question that words begin with, by its name or the one it had, and how many they are; "" and 0: none.

    Seams are read only for words that are not the core's.
    """
    for known in (lambda: QUESTIONS, questions) if words else ():
        names = {entry.was: name for name, entry in known().items()} | {name: name for name in known()}
        for count in (2, 1):
            if name := names.get(" ".join(words[:count])):
                return name, min(count, len(words))
    return "", 0


def module_of(name: str) -> ModuleType:
    """Return the module that answers a question; RecipeError where nothing that is installed has it."""
    entry = entry_of(name)
    if entry is None:
        message = f"nothing that is installed here answers {name!r}; install the package that has it"
        raise RecipeError(message)
    return import_module(entry.module)


@cache
def questions() -> Mapping[str, Entry]:
    """Return every question by name, in the order of groups: the core's, of our extensions, and of other packages."""
    found = seams.entries(SEAM, QUESTIONS, Entry)
    ranks = {group: rank for rank, group in enumerate(GROUPS)}
    return MappingProxyType(dict(sorted(found.items(), key=lambda each: ranks.get(each[1].group, len(GROUPS)))))
