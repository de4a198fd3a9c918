"""A training machine installs numpy, pyarrow and boto3, and nothing else: the loader runs there."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

from pipeline_tasks.testing.training_dataset import write_dataset
from tests.installed import lines_of

PROJECT = Path(__file__).parents[2]
FACTS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]

ONLY = """
import sys
from importlib.abc import MetaPathFinder

class Installed(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in {allowed}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Installed())
"""

LOAD = """
from pipeline_tasks.training import bucket_folder, usage
from pipeline_tasks.training.dataset import TokenDataset
print(sum(item["n_tokens"] for item in TokenDataset(sys.argv[1])))
"""

COMMAND = """
from pipeline_tasks.cli.main import main
sys.exit(main(["status", "."]))
"""


def run_with_base_packages(script: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a script in a process that can import what the base package requires, and no other package."""
    names = {name for distribution in required() for name in modules(distribution)}
    program = ONLY.format(allowed=sorted(names | {"pipeline_tasks"})) + script
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=PROJECT)


def required() -> set[str]:
    """Return the distributions that the base package needs, with what those need."""
    known: set[str] = set()
    waiting = list(FACTS["dependencies"])
    while waiting:
        name = canonical(re.split(r"[^\w.-]", waiting.pop())[0])
        if name not in known:
            known.add(name)
            waiting += [text for text in requires(name) or [] if "extra ==" not in text]
    return known


def modules(distribution: str) -> set[str]:
    return {name for name, owners in packages_distributions().items() if distribution in map(canonical, owners)}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_base_package_needs_three_packages() -> None:
    assert FACTS["dependencies"] == ["numpy", "pyarrow", "boto3"]


def test_what_refines_and_what_is_pinned_are_the_same() -> None:
    pinned = set(re.findall(r"^([\w.-]+)==", (PROJECT / "requirements.txt").read_text(), re.MULTILINE))
    wanted = {canonical(re.split(r"[^\w.-]", text)[0]) for text in lines_of("refine")}
    assert wanted <= {canonical(name) for name in pinned}
    assert {canonical(name) for name in FACTS["dependencies"]} <= wanted


def test_the_loader_runs_on_the_base_packages_alone(tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [20])
    done = run_with_base_packages(LOAD, str(packed.folder))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == sum(packed.tokens(index) for index in range(20))


def test_a_command_that_needs_more_says_what_to_install() -> None:
    done = run_with_base_packages(COMMAND)
    assert done.returncode == 78, done.stderr
    assert "is not installed here; install the package with its extra `text`" in done.stderr
    assert "Traceback" not in done.stderr
