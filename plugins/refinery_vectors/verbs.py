"""The requests that this package answers.

index   bring the store of vectors in line with what is published, and map the snapshot
"""

from pipeline_tasks.service.requests.publication import IndexRequest
from pipeline_tasks.service.verbs import Verb

VERBS = {"index": Verb(IndexRequest, "refinery_vectors.work:index")}
"""The verbs of stores of vectors."""
