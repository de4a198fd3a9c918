"""The commands of the extension."""

from pipeline_tasks.ask.known import Entry

QUESTIONS = {
    "train-lm": Entry(
        "refinery_models.commands.train_lm",
        "train a language's n-gram model on trusted text, for score_quality",
        "models",
    ),
    "train-quality-model": Entry(
        "refinery_models.commands.train_quality_model",
        "train a model of the quality of texts on good ones and a crawl, for score_quality",
        "models",
    ),
    "train-extractor": Entry(
        "refinery_models.commands.train_extractor",
        "train the model that reads a page's blocks on pages whose text people marked",
        "models",
    ),
    "train-topics": Entry(
        "refinery_models.commands.train_topics",
        "find what texts are about, by their vectors, for the stage topics",
        "models",
    ),
    "scorer": Entry(
        "refinery_models.commands.scorer", "check a model that scores documents, before it may decide", "models"
    ),
}
"""The questions that train models, and check them."""
