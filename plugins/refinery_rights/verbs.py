"""The verbs of this package over a whole root, which recipes name in `run: engines:`."""

from pipeline_tasks.recipe import WholeRoot

OPTED_OUT = WholeRoot(building=False)
"""Where recipes say on which engine documents are looked for that are opted out since."""
