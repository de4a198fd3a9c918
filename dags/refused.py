"""Shows what the deployment's file refuses as an import error of Airflow; it has no DAG.

Recipes that are refused have none either: no task runs for them. All others run. Airflow's DAG processor reads this
file as it has the words dag and airflow.
"""

from refinery_airflow.tasks.wiring import refusals

from pipeline_tasks.errors import RecipeError

if _refused := refusals():
    raise RecipeError("\n".join(_refused))
