"""The commands that bring what is published to others."""

from pipeline_tasks.ask.known import Entry

QUESTIONS = {
    "export": Entry(
        "refinery_exports.export",
        "write a training dataset, or refined snapshots, in the format of others",
        "build",
        supervised=True,
        shows=True,
    ),
    "register": Entry(
        "refinery_exports.tables.register",
        "make what is published tables of a catalog (Iceberg, DuckLake)",
        "build",
        supervised=True,
    ),
    "annotations": Entry(
        "refinery_exports.annotations",
        "write what was decided on each record, to be joined with Common Crawl's index",
        "build",
        supervised=True,
        shows=True,
    ),
}
