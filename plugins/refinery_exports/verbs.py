"""The requests that this package answers.

export     write a version of a training dataset in the formats that its recipe names
register   make a version a snapshot of the tables of its recipe in a catalog
"""

from pipeline_tasks.recipe import WholeRoot
from pipeline_tasks.service.requests.publication import ExportRequest, RegisterRequest
from pipeline_tasks.service.verbs import Verb

VERBS = {
    "export": Verb(ExportRequest, "refinery_exports.work:export"),
    "register": Verb(RegisterRequest, "refinery_exports.tables.work:register"),
}
"""The verbs of exports and tables."""

EXPORT = WholeRoot(refining=False)
"""Where recipes say on which engine an export is written."""

REGISTER = WholeRoot()
"""Where recipes say on which engine the files of tables are written."""
