"""What of the checkout is in the wheel, and where: `pyproject.toml` has all that needs no code.

`pipeline_tasks/shipped.py` finds these folders again. Modules of `plugins/` keep their names: Airflow stores the paths
of the classes of operators and triggers.
"""

from pathlib import Path

from setuptools import find_packages, setup

FOLDERS = {
    "pipeline_tasks.dags": "dags",
    "pipeline_tasks.expectations": "expectations",
    "pipeline_tasks.sql": "sql",
    "refinery_pages": "plugins/refinery_pages",
}

# The metadata of a build must not lie on a checkout's PYTHONPATH: Airflow would find the plugin twice, there and where
# the package is installed.
METADATA = Path("build")
METADATA.mkdir(exist_ok=True)

setup(
    packages=[*find_packages(include=["pipeline_tasks*"]), *FOLDERS],
    py_modules=sorted(path.stem for path in Path("plugins").glob("*.py")),
    package_dir={"": "plugins", "pipeline_tasks": "pipeline_tasks", **FOLDERS},
    options={"egg_info": {"egg_base": str(METADATA)}},
)
