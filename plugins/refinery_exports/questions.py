"""The commands that export a training dataset, and what was decided on the records of a crawl."""

from pipeline_tasks.ask.known import Entry

QUESTIONS = {
    "export": Entry(
        "refinery_exports.export",
        "write a training dataset in the format of another trainer",
        "build",
        supervised=True,
        shows=True,
    ),
    "annotations": Entry(
        "refinery_exports.annotations",
        "write what was decided on each record, to be joined with Common Crawl's index",
        "build",
        supervised=True,
        shows=True,
    ),
}
