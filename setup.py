"""What of the checkout is in the wheel, and where: `pyproject.toml` has all that needs no code.

`pipeline_tasks/shipped.py` finds these folders again.
"""

from pathlib import Path

from setuptools import find_packages, setup

FOLDERS = {
    "pipeline_tasks.dags": "dags",
    "pipeline_tasks.expectations": "expectations",
    "pipeline_tasks.sql": "sql",
}

# The metadata of a build must not lie on a checkout's PYTHONPATH: Airflow would find the plugin twice, there and where
# the package is installed.
METADATA = Path("build")
METADATA.mkdir(exist_ok=True)

setup(
    packages=[*find_packages(include=["pipeline_tasks*"]), *find_packages("plugins"), *FOLDERS],
    package_dir={"": "plugins", "pipeline_tasks": "pipeline_tasks", **FOLDERS},
    options={"egg_info": {"egg_base": str(METADATA)}},
)
