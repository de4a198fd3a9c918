"""The tasks of a comparison: the command does them in this process, and the DAG `refinery_ablate` renders them."""

from pipeline_tasks.flow.plan import Flow, Output, Task

FLOW = Flow(
    "refinery_ablate",
    "",
    (
        Task("plan", "plan"),
        Task("train_a", "train", inputs={"run_name": Output("plan")}, over="run_name"),
        Task("forecast", "forecast", after=("train_a",)),
        Task("train_b", "train", inputs={"run_name": Output("forecast")}, over="run_name"),
        Task("judge", "judge", after=("train_b",)),
    ),
)
"""Plan, which names the runs of the first arm; train them; say by them what can be seen; train the others; judge."""
