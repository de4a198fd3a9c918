"""The commands of the extension."""

from pipeline_tasks.ask.known import Entry

QUESTIONS = {
    "model lm": Entry(
        "refinery_models.commands.train_lm",
        "train a language's n-gram model on trusted text, for score_quality",
        "models",
        was="train-lm",
    ),
    "model quality": Entry(
        "refinery_models.commands.train_quality_model",
        "train a model of the quality of texts on good ones and a crawl, for score_quality",
        "models",
        was="train-quality-model",
    ),
    "model extractor": Entry(
        "refinery_models.commands.train_extractor",
        "train the model that reads a page's blocks on pages whose text people marked",
        "models",
        was="train-extractor",
    ),
    "model topics": Entry(
        "refinery_models.commands.train_topics",
        "find what texts are about, by their vectors, for the stage topics",
        "models",
        was="train-topics",
    ),
    "model cost": Entry(
        "refinery_models.commands.generation_cost",
        "foretell what it costs to have a model write of documents, by a real sample",
        "models",
    ),
    "model check": Entry(
        "refinery_models.commands.scorer",
        "measure what a model of scores tells from nonsense, and by what it sorts, before it may decide",
        "models",
        was="scorer check",
    ),
}
"""The questions that train models, and check them."""
