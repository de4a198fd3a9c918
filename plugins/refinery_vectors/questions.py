"""The questions of this package."""

from pipeline_tasks.ask.known import Entry

QUESTIONS = {
    "look similar": Entry(
        "refinery_vectors.similar",
        "find the published documents that are most like a document or a text",
        "look",
        shows=True,
        was="similar",
        is_question=True,
    ),
    "keep index": Entry(
        "refinery_vectors.index",
        "bring the store of vectors in line with what is published, for `similar`",
        "keep in order",
        supervised=True,
        was="index",
    ),
}
