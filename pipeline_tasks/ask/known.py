"""Says which questions there are: each is a command, with the module that answers it, and the group it is shown in."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from pipeline_tasks import seams

SEAM = "refinery.questions"
"""The seam of questions: each of its parts is a dict of names and their `Entry`, in a module that imports little."""

GROUPS = ("refine", "look", "build", "keep in order", "people and rights", "models", "set up")
"""The groups of questions, in the order of `refinery --help`."""


class Entry(NamedTuple):
    """A question's module, its line in `refinery --help`, and its group.

    `supervised`: it starts processes. `shows`: it shows texts, or names of pages, and logs its looks at a shared root.
    """

    module: str
    help: str
    group: str
    supervised: bool = False
    shows: bool = False


QUESTIONS = {
    "run": Entry(
        "pipeline_tasks.cli.commands.run",
        "refine one snapshot and build from it, in this process",
        "refine",
        supervised=True,
    ),
    "pull": Entry(
        "pipeline_tasks.cli.commands.pull",
        "pull a snapshot from a source into a landing: whole, or not at all",
        "refine",
    ),
    "sources": Entry(
        "pipeline_tasks.inspect.sources",
        "list sources: what has landed of each, what has not ended, who refuses",
        "refine",
    ),
    "plan": Entry(
        "pipeline_tasks.inspect.plan",
        "plan a training run: bytes to crawl, cores, storage, money, rate of the loader",
        "refine",
    ),
    "whatif": Entry(
        "pipeline_tasks.inspect.whatif", "predict what other bounds, or conditions on columns, would keep", "refine"
    ),
    "lint": Entry(
        "pipeline_tasks.inspect.lint",
        "find what in a recipe is wrong or without effect, and what of a snapshot will not fit",
        "refine",
    ),
    "fetch": Entry(
        "pipeline_tasks.cli.commands.fetch",
        "fetch public evaluation sets or URL lists, pinned, for decontaminate or filter_url",
        "refine",
    ),
    "status": Entry(
        "pipeline_tasks.inspect.versions.status",
        "list snapshots: published, retracted, stale, and those whose run stopped",
        "look",
    ),
    "versions": Entry(
        "pipeline_tasks.inspect.versions", "list every published version, and whether it still counts", "look"
    ),
    "diff": Entry(
        "pipeline_tasks.inspect.diff", "compare two versions: settings, rows, distributions, documents by id", "look"
    ),
    "funnel": Entry("pipeline_tasks.inspect.funnel", "documents, bytes and reasons from stage to stage", "look"),
    "breakdown": Entry(
        "pipeline_tasks.inspect.breakdown",
        "documents kept and rejected by type, topic or any column, or by two",
        "look",
        shows=True,
    ),
    "report": Entry("pipeline_tasks.inspect.report", "print the path of a snapshot's report", "look"),
    "trace": Entry(
        "pipeline_tasks.inspect.document.trace",
        "trace a packed token back to its document and landed record",
        "look",
        shows=True,
    ),
    "lineage": Entry(
        "pipeline_tasks.inspect.versions.lineage",
        "show the manifests that a version was made from, with their parents",
        "look",
    ),
    "find": Entry(
        "pipeline_tasks.inspect.search.find",
        "find every place where a document, URL or site is used in training datasets",
        "look",
        shows=True,
    ),
    "search": Entry(
        "pipeline_tasks.inspect.search",
        "list the documents of a snapshot whose text has a phrase, or by columns",
        "look",
        shows=True,
    ),
    "similar": Entry(
        "pipeline_tasks.inspect.search.similar",
        "find the published documents that are most like a document or a text",
        "look",
        shows=True,
    ),
    "map": Entry(
        "pipeline_tasks.cli.commands.map",
        "draw a version's documents as points, near by their vectors, colored by any column",
        "look",
        shows=True,
    ),
    "document": Entry(
        "pipeline_tasks.inspect.document",
        "show every decision on a document: signals, reasons, evidence, record",
        "look",
        shows=True,
    ),
    "read": Entry(
        "pipeline_tasks.inspect.read",
        "read documents that were kept and rejected, judge them, and see what that says",
        "look",
        shows=True,
    ),
    "intruder": Entry(
        "pipeline_tasks.inspect.intruder",
        "find the foreign one of five documents: whether groups have much in common",
        "look",
        shows=True,
    ),
    "rejects": Entry(
        "pipeline_tasks.inspect.rejects", "count or export the rows that a stage rejected", "look", shows=True
    ),
    "sql": Entry(
        "pipeline_tasks.inspect.sql",
        "query by SQL the verified rows of a version: kept, rejected, stages, lineage",
        "look",
        shows=True,
    ),
    "redactions": Entry(
        "pipeline_tasks.inspect.redactions",
        "count and place personal data or words that offend, without the values",
        "look",
        shows=True,
    ),
    "duplicates": Entry(
        "pipeline_tasks.inspect.document.duplicates",
        "show a document's cluster: which document is kept, and the proof",
        "look",
        shows=True,
    ),
    "contamination": Entry(
        "pipeline_tasks.inspect.contamination",
        "list evaluation items in snapshots, or look for a new benchmark",
        "look",
        shows=True,
    ),
    "lsh-curve": Entry(
        "pipeline_tasks.inspect.lsh_curve",
        "compute the probability that bands and rows make a pair a candidate",
        "look",
    ),
    "build": Entry(
        "pipeline_tasks.cli.commands.build",
        "build a training dataset from published snapshots",
        "build",
        supervised=True,
    ),
    "export": Entry(
        "pipeline_tasks.cli.commands.export",
        "write a training dataset in the format of another trainer",
        "build",
        supervised=True,
        shows=True,
    ),
    "verify": Entry(
        "pipeline_tasks.inspect.verify",
        "re-check every digest, and that every record is accounted for",
        "keep in order",
    ),
    "retract": Entry(
        "pipeline_tasks.upkeep.retract",
        "make the dataset what it would be without a snapshot",
        "keep in order",
        supervised=True,
    ),
    "vacuum": Entry(
        "pipeline_tasks.upkeep.vacuum",
        "list (with --delete, remove) files that no manifest names",
        "keep in order",
        supervised=True,
    ),
    "retention": Entry(
        "pipeline_tasks.upkeep.retention.command",
        "list (with --apply, do) what a policy says of how long objects are kept, and in which class",
        "keep in order",
        supervised=True,
    ),
    "index": Entry(
        "pipeline_tasks.upkeep.index",
        "bring the store of vectors in line with what is published, for `similar`",
        "keep in order",
        supervised=True,
    ),
    "compact": Entry(
        "pipeline_tasks.upkeep.compact",
        "merge the history of many snapshots, so that a run reads fewer files",
        "keep in order",
        supervised=True,
    ),
    "upgrade": Entry(
        "pipeline_tasks.upkeep.upgrade",
        "say what an installed release makes outdated, why, and what it costs",
        "keep in order",
    ),
    "ledger": Entry("pipeline_tasks.upkeep.ledger", "make the ledger anew from the root", "keep in order"),
    "access": Entry(
        "pipeline_tasks.inspect.access",
        "list who saw texts: the looks of pages, and of commands at a shared root",
        "people and rights",
    ),
    "sign": Entry(
        "pipeline_tasks.cli.commands.sign",
        "sign what a version delivers and what it was made from, as an in-toto statement",
        "people and rights",
    ),
    "disclose": Entry(
        "pipeline_tasks.inspect.disclose",
        "write what a version was made of: the EU's summary, a datasheet, Croissant, SPDX",
        "people and rights",
    ),
    "takedown": Entry(
        "pipeline_tasks.cli.commands.takedown",
        "take documents, URLs or sites out of training datasets, and refuse them",
        "people and rights",
        supervised=True,
    ),
    "erase": Entry(
        "pipeline_tasks.cli.commands.erase",
        "complete takedowns: erase the documents below a root",
        "people and rights",
        supervised=True,
    ),
    "demo": Entry(
        "pipeline_tasks.demo.show",
        "write two small crawl snapshots, refine both, compare with the truth",
        "set up",
        supervised=True,
    ),
    "up": Entry(
        "pipeline_tasks.cli.commands.up",
        "start Airflow's web UI on this machine with everything embedded",
        "set up",
        supervised=True,
    ),
    "airflow": Entry(
        "pipeline_tasks.cli.commands.airflow", "run Airflow's own command on the Airflow of `refinery up`", "set up"
    ),
    "compile": Entry(
        "pipeline_tasks.cli.commands.compile",
        "compile the loops over text for this machine, so that no task has to",
        "set up",
        supervised=True,
    ),
    "new": Entry(
        "pipeline_tasks.cli.commands.new",
        "write a package with a stage, filter, source or export of your own",
        "set up",
    ),
    "doctor": Entry(
        "pipeline_tasks.upkeep.doctor",
        "check Java, Spark, Ray, the tokenizer and the object store",
        "set up",
        supervised=True,
    ),
}
"""The questions that the core answers, by name."""


def entry_of(name: str) -> Entry | None:
    """Return the entry of a question, None if there is none; only for a name that is not the core's, seams are read."""
    return QUESTIONS.get(name) or questions().get(name)


def questions() -> Mapping[str, Entry]:
    """Return every question by name, in the order of groups: the core's, of our extensions, and of other packages."""
    found = dict(QUESTIONS)
    for part in (*seams.own_parts(SEAM).values(), *seams.parts(SEAM).values()):
        found |= part.load(dict)
    return MappingProxyType(dict(sorted(found.items(), key=lambda each: GROUPS.index(each[1].group))))
