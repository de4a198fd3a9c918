"""What the page on tables shows to others, run against a root: programs of PyIceberg and Arrow, and DuckDB's SQL."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_tasks.inspect.funnel import funnel
from pipeline_tasks.publish.logs import version_log
from tests.commands import Refinery
from tests.lakes import READERS
from tests.small_build import copied
from tests.small_root import RECIPE, SmallRoot
from tests.table_catalogs import catalog_at

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "build" / "register-tables.md"

OWN = {"demo.": f"{RECIPE}.", "language = 'en' and score > 0.5": "chars > 10", '"score"': '"chars"', "score": "chars"}
"""What the page says of the demo's columns, and what the small root has."""


def blocks(language: str) -> list[str]:
    """The blocks of a language on the page, for the small root."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    for shown, own in OWN.items():
        found = [block.replace(shown, own) for block in found]
    return found


def kept(root: str) -> int:
    return sum(int(funnel(root, version)[-1]["rows"]) for version in version_log.latest_by_snapshot(root, RECIPE))


@pytest.fixture
def small(small_root: SmallRoot, tmp_path: Path) -> SmallRoot:
    return copied(small_root, tmp_path)


@pytest.mark.slow
def test_programs_of_the_page_run(
    small: SmallRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refinery: Refinery
) -> None:
    catalog_at("iceberg", tmp_path / "catalog", monkeypatch)
    assert refinery("register", small.root, "--recipe", RECIPE).returncode == 0
    programs = [block for block in blocks("python") if "import ray" not in block]  # `test_iceberg_catalog` reads by Ray
    said = "\n".join([*programs, "print(documents.count_rows(), why.num_rows > 0)"])
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(kept(small.root)), "True"], done.stderr


@pytest.mark.skipif(not READERS, reason="needs other readers: make readers-test")
def test_sql_of_the_page_runs(small: SmallRoot, tmp_path: Path, refinery: Refinery) -> None:
    lake = tmp_path / "lake.sqlite"
    assert refinery("register", small.root, "--recipe", RECIPE, "--catalog", f"ducklake:sqlite:{lake}").returncode == 0
    [statements] = blocks("sql")
    statements = statements.replace("/data/lake.sqlite", str(lake)).replace("INSTALL ducklake; INSTALL sqlite;", "")
    program = f"""
import duckdb, duckdb_extensions
for name in ("ducklake", "sqlite_scanner"):
    duckdb_extensions.import_extension(name)
print(sum(row[1] for row in duckdb.connect().execute('''{statements.replace("chars > 0.5", "chars > 0")}''').fetchall()))
"""
    done = subprocess.run([READERS, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(kept(small.root)), done.stderr
