"""The verbs of this package over a whole root, which recipes name in `run: engines:`."""

from pipeline_tasks.recipe import WholeRoot

CONTAMINATION = WholeRoot()
"""Where recipes say on which engine documents are searched for evaluation items."""
