"""Commands of `refinery` in the process of the tests: Airflow is imported once, and a run takes seconds."""

from dataclasses import dataclass

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.store.s3 import waits as s3_waits


@dataclass(frozen=True, slots=True)
class Done:
    """What a command has left: its exit code, and what it has printed."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Refinery:
    """The command `refinery` in this process, which a run leaves as it was."""

    printed: "pytest.CaptureFixture[str]"

    def __call__(self, *arguments: object) -> Done:
        """Run a command in the environment of the test; return what it has left.

        A run ends with the documents of its snapshot, unless the test says by what it builds.
        """
        if arguments[0] == "run" and not {"--build", "--no-build"} & {*arguments}:
            arguments = (*arguments, "--no-build")
        self.printed.readouterr()
        s3_waits.take()  # of the tests before
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as error:  # of argparse
            code = int(error.code or 0)
        return Done(code, *self.printed.readouterr())
