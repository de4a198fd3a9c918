"""Redact, pseudonymize or drop personal data in generated documents, as `scrub_pii` does in pages."""

from pipeline_tasks.stages import scrub_pii
from pipeline_tasks.stages.filter_generated.twins import of_generated

STAGE = of_generated(scrub_pii.STAGE, "scrub_generated", "Remove personal data from generated documents")
