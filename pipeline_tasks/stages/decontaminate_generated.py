"""Reject generated documents with items of evaluation sets, or cut those out, as `decontaminate` does in pages."""

from pipeline_tasks.stages import decontaminate
from pipeline_tasks.stages.filter_generated.twins import of_generated

STAGE = of_generated(decontaminate.STAGE, "decontaminate_generated", "evaluation sets out of generated documents")
