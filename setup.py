"""What of the checkout is in the wheel, and where: `pyproject.toml` has all that needs no code.

`pipeline_tasks/shipped.py` finds these folders again.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

FOLDERS = {
    "pipeline_tasks.dags": "dags",
    "pipeline_tasks.expectations": "expectations",
    "pipeline_tasks.sql": "sql",
}

PINNED = re.compile(r"^([\w.-]+)(?:\[[^\]]*\])?(==[^\\\n]+?) *\\?$", re.MULTILINE)
"""A package of `requirements.txt` with its version, and where it is needed; its hashes are on the lines below."""


class BuildWithConstraints(build_py):
    """Writes the pins of this release into the wheel: with them an Airflow of one's own has the same libraries."""

    def run(self) -> None:
        """Copy the modules, and write `constraints.txt` beside them."""
        super().run()
        if not self.editable_mode:
            pins = PINNED.findall(Path("requirements.txt").read_text(encoding="utf-8"))
            lines = "".join(f"{name}{version}\n" for name, version in pins)
            (Path(self.build_lib) / "pipeline_tasks" / "constraints.txt").write_text(lines, encoding="utf-8")


# The metadata of a build must not lie on a checkout's PYTHONPATH: Airflow would find the plugin twice, there and where
# the package is installed.
METADATA = Path("build")
METADATA.mkdir(exist_ok=True)

setup(
    packages=[*find_packages(include=["pipeline_tasks*"]), *find_packages("plugins"), *FOLDERS],
    package_dir={"": "plugins", "pipeline_tasks": "pipeline_tasks", **FOLDERS},
    cmdclass={"build_py": BuildWithConstraints},
    options={"egg_info": {"egg_base": str(METADATA)}},
)
