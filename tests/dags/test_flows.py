"""Each DAG is rendered from a flow, which is data, or a table says why its tasks are wired by hand."""

from typing import Any

BY_HAND = {
    "arrivals.py": "it starts runs of other DAGs, as only Airflow can",
    "maintenance.py": "its five tasks pass nothing on, and the commands that do the same are five",
    "sources.py": "it has one task, and one behind it for what a source has deleted, which no command does with it",
    "train_quality_model.py": "three tasks one behind the other; its command sends the same three requests",
}
"""Files of DAGs without a flow, and why."""


def test_a_dag_has_exactly_the_tasks_and_edges_of_its_flow(parsed: dict[str, Any]) -> None:
    rendered = {name: dag for name, dag in parsed["dags"].items() if dag["file"] not in BY_HAND}
    for name, dag in rendered.items():
        tasks = {task["id"]: [task["mapped"], task["upstream"]] for task in dag["tasks"]}
        assert tasks == dag["flow"], name
    assert {"refine", "build_corpus", "refinery_ablate"} <= set(rendered)


def test_only_files_that_say_why_wire_their_tasks_by_hand(parsed: dict[str, Any]) -> None:
    assert {dag["file"] for dag in parsed["dags"].values() if not dag["flow"]} == set(BY_HAND)
