"""`refinery setup airflow` runs Airflow's own command on the Airflow of this machine, which `refinery up` starts."""

import argparse
import os
import sys

from pipeline_tasks.shipped import state_folder
from refinery_airflow.embedded import airflow_home, postgresql


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the words of Airflow's command."""
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="...", help="such as: backfill create --help")


def answer(options: argparse.Namespace) -> int:
    """Become Airflow's command, in the environment of the embedded installation."""
    home = state_folder() / "airflow"
    url = airflow_home.database_url(home)
    if postgresql.is_of(home, url):
        postgresql.require_database(url, "`refinery up` runs it: start that in another terminal")
    env = {**os.environ, **airflow_home.environment(home)}
    airflow_home.migrate(home, env)
    command = [sys.executable, "-m", "airflow", *options.words]
    sys.stdout.flush()
    os.execve(sys.executable, command, env)  # noqa: S606 -- our own interpreter
