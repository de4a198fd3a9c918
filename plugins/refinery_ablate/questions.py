"""The commands of the extension."""

from pipeline_tasks.ask.known import Entry

QUESTIONS = {
    "ablate": Entry(
        "refinery_ablate.commands.ablate",
        "train small models on two recipes or datasets: which is better, how sure, at what price",
        "models",
    ),
    "model mixture": Entry(
        "refinery_ablate.commands.mixture",
        "search the mixture of a dataset's groups that gives the best models, by many small ones",
        "models",
        was="mixture",
    ),
}
"""The questions that judge data by the models that it trains."""
