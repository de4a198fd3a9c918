"""`airflow standalone` without its log servers, and with components that start again.

`python -m refinery_airflow.embedded.standalone` runs it. The scheduler's and the triggerer's log servers listen on all
interfaces (8793, 8794), and no setting changes that. Here the web server reads the logs from the same disk, so nobody
needs them. `airflow standalone` goes on when a component has died, as the scheduler may where SQLite is locked for too
long; then nothing runs any more, and nothing says why.
"""

import subprocess
from threading import Event, Thread

from airflow.cli.commands import standalone_command

PARTS = {"scheduler", "triggerer"}
"""The components that have a log server."""

PAUSE = 5.0
"""Seconds between the end of a component and its next start."""


class Component(standalone_command.SubCommand):  # type: ignore[misc]
    """A component of Airflow, started without a log server, and again when it ends before it is stopped."""

    command: list[str]

    def __init__(
        self, parent: standalone_command.StandaloneCommand, name: str, command: list[str], env: dict[str, str]
    ) -> None:
        logs = ["--skip-serve-logs"] if name in PARTS else []
        super().__init__(parent, name, [*command, *logs], env)
        self.stopped = Event()

    def run(self) -> None:
        """Run the component until it is stopped; say in the log when it ended by itself."""
        while not self.stopped.is_set():
            self.process = subprocess.Popen(  # noqa: S603 -- Airflow's own commands
                ["airflow", *self.command],  # noqa: S607 -- the environment's
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self.env,
            )
            Thread(target=self._pass_on, args=(self.process,), daemon=True).start()
            code = self.process.wait()  # its output may end later: processes that it started have it, too
            if not self.stopped.wait(PAUSE):
                self._say(f"{self.name} ended with exit code {code}; it is started again")

    def _pass_on(self, process: "subprocess.Popen[bytes]") -> None:
        for line in process.stdout or ():
            self.parent.output_queue.append((self.name, line))

    def _say(self, line: str) -> None:
        self.parent.output_queue.append(("standalone", f"{line}\n".encode()))

    def stop(self) -> None:
        """Stop the component."""
        self.stopped.set()
        super().stop()


if __name__ == "__main__":
    standalone_command.SubCommand = Component
    standalone_command.StandaloneCommand().run()
