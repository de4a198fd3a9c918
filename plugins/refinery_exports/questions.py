"""The command that exports what is published."""

from pipeline_tasks.ask.known import Entry

QUESTIONS = {
    "export": Entry(
        "refinery_exports.export",
        "write a training dataset, or refined snapshots, in the format of others",
        "build",
        supervised=True,
        shows=True,
    ),
}
