"""The requests of a comparison of two recipes, which the DAG `refinery_ablate` sends.

plan_ablation
         make the arms of a comparison, write its plan, and name the runs of the first one
forecast_ablation
         say what a comparison can see and costs, and name the other runs
judge_ablation
         judge a comparison whose runs have ended, and record the verdict
"""

from pipeline_tasks.service.verbs import Verb
from refinery_ablate.requests import ForecastAblationRequest, JudgeAblationRequest, PlanAblationRequest

VERBS = {
    "plan_ablation": Verb(PlanAblationRequest, "refinery_ablate.work:plan"),
    "forecast_ablation": Verb(ForecastAblationRequest, "refinery_ablate.work:forecast"),
    "judge_ablation": Verb(JudgeAblationRequest, "refinery_ablate.work:judge"),
}
"""The verbs of comparisons."""
