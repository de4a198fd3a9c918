"""`airflow standalone` without its log servers: `python -m pipeline_tasks.embedded.standalone`.

The scheduler's and the triggerer's log servers listen on all interfaces (8793, 8794), and no setting changes that. Here
the web server reads the logs from the same disk, so nobody needs them.
"""

from airflow.cli.commands import standalone_command

PARTS = {"scheduler", "triggerer"}
"""The components that have a log server."""


class Component(standalone_command.SubCommand):  # type: ignore[misc]
    """A component of Airflow, started without a log server."""

    command: list[str]

    def run(self) -> None:
        """Run the component until it ends."""
        if self.name in PARTS:
            self.command = [*self.command, "--skip-serve-logs"]
        super().run()


if __name__ == "__main__":
    standalone_command.SubCommand = Component
    standalone_command.StandaloneCommand().run()
