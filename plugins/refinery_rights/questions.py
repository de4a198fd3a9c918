"""The questions of this package."""

from pipeline_tasks.ask.known import Entry

QUESTIONS = {
    "keep sign": Entry(
        "refinery_rights.sign",
        "sign what a version delivers and what it was made from, as an in-toto statement",
        "keep in order",
        was="sign",
    ),
    "disclose": Entry(
        "refinery_rights.disclose",
        "write what a version was made of: the EU's summary, a datasheet, Croissant, SPDX",
        "people and rights",
    ),
    "takedown": Entry(
        "refinery_rights.takedown",
        "take documents, URLs or sites out of training datasets, and refuse them",
        "people and rights",
        supervised=True,
    ),
    "erase": Entry(
        "refinery_rights.erase",
        "complete takedowns: erase the documents below a root",
        "people and rights",
        supervised=True,
    ),
}
