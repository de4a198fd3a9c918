"""The command that exports a training dataset."""

from pipeline_tasks.ask.known import Entry

QUESTIONS = {
    "export": Entry(
        "refinery_exports.export",
        "write a training dataset in the format of another trainer",
        "build",
        supervised=True,
        shows=True,
    ),
}
