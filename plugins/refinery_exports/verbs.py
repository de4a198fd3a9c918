"""The requests that this package answers.

export   write a version of a training dataset in the formats that its recipe names
"""

from pipeline_tasks.recipe import WholeRoot
from pipeline_tasks.service.requests.publication import ExportRequest
from pipeline_tasks.service.verbs import Verb

VERBS = {"export": Verb(ExportRequest, "refinery_exports.work:export")}
"""The verbs of exports."""

EXPORT = WholeRoot(refining=False)
"""Where recipes say on which engine an export is written."""
