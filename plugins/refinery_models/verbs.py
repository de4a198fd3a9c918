"""The requests of a model of the quality of texts, which the DAG `train_quality_model` sends.

train_model
         train a model of the quality of texts, and store it below the root
check_model
         check a stored model; refuse one that sorts by source, or does not tell texts from nonsense
publish_model
         publish a stored model with its reports
"""

from pipeline_tasks.service.verbs import Verb
from refinery_models.requests import CheckModelRequest, PublishModelRequest, TrainModelRequest

VERBS = {
    "train_model": Verb(TrainModelRequest, "refinery_models.work:train"),
    "check_model": Verb(CheckModelRequest, "refinery_models.work:check"),
    "publish_model": Verb(PublishModelRequest, "refinery_models.work:publish"),
}
"""The verbs of models."""
