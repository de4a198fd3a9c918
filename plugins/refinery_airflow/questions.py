"""The commands of Airflow on this machine."""

from pipeline_tasks.ask.known import Entry

QUESTIONS = {
    "up": Entry(
        "refinery_airflow.embedded.up",
        "start Airflow's web UI on this machine with everything embedded",
        "set up",
        supervised=True,
    ),
    "setup airflow": Entry(
        "refinery_airflow.embedded.airflow",
        "run Airflow's own command on the Airflow of `refinery up`",
        "set up",
        was="airflow",
    ),
}
