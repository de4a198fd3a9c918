"""Verify, lint and the index ask the parts of their seams: our extensions', and those that others bring."""

import argparse
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from refinery_vectors.work import MAPS

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.lint import FINDINGS, lint
from pipeline_tasks.inspect.verify import COMPARISONS
from pipeline_tasks.inspect.verify.findings import Findings
from pipeline_tasks.inspect.verify.verification import CHECKS
from pipeline_tasks.seams import Part, all_parts
from tests.brought import Site, site
from tests.chain import reply
from tests.small_root import DAYS, RECIPE, SmallRoot

PARAMETERS = {CHECKS: ["root", "findings"], FINDINGS: ["root", "recipe"], MAPS: ["root", "recipe", "snapshot"]}


def _name(of: str | Part) -> str:
    return of if isinstance(of, str) else of.name


@pytest.fixture
def packages(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "site") as packages:
        yield packages


@pytest.mark.parametrize(
    ("seam", "part"), [(seam, part) for seam in PARAMETERS for part in all_parts(seam).values()], ids=_name
)
def test_a_part_takes_what_it_is_asked_with(seam: str, part: Part) -> None:
    assert list(inspect.signature(part.load()).parameters) == PARAMETERS[seam]


def test_each_seam_has_a_part_of_ours() -> None:
    assert [seam for seam in (*PARAMETERS, COMPARISONS) if not all_parts(seam)] == []


@pytest.mark.parametrize("part", all_parts(CHECKS).values(), ids=_name)
def test_a_check_finds_nothing_where_nothing_is(part: Part, tmp_path: Path) -> None:
    part.load()(str(tmp_path), findings := Findings())
    assert (findings.problems, findings.notes) == ([], [])


@pytest.mark.parametrize("part", all_parts(FINDINGS).values(), ids=_name)
def test_a_root_without_anything_has_no_findings(part: Part, tmp_path: Path) -> None:
    assert list(part.load()(str(tmp_path), "web")) == []


@pytest.mark.parametrize("part", all_parts(COMPARISONS).values(), ids=_name)
def test_a_comparison_without_its_options_is_none(part: Part) -> None:
    part.load().add_arguments(parser := argparse.ArgumentParser())
    assert part.load().answer(parser.parse_args([])) is None


def test_what_others_bring_is_asked(packages: Site, small_root: SmallRoot, capsys: pytest.CaptureFixture[str]) -> None:
    code = """
from pipeline_tasks.inspect.verify.findings import Problem
from pipeline_tasks.run.recipe_faults import Finding

def check(root, findings):
    findings.add(Problem(root, "has a moth"))

def find(root, recipe):
    yield Finding(fault=False, where="moth", message=f"{recipe} has one")

def draw(root, recipe, snapshot):
    return f"maps/{recipe}/{snapshot}"

def add_arguments(parser):
    parser.add_argument("--moon", default="")

def answer(options):
    return 7 if options.moon else None
"""
    packages.install("checks", CHECKS, {"moth": "brought_checks:check"}, code)
    packages.install("findings", FINDINGS, {"moth": "brought_findings:find"}, code)
    packages.install("maps", MAPS, {"drawn": "brought_maps:draw"}, code)
    packages.install("comparisons", COMPARISONS, {"moon": "brought_comparisons"}, code)
    assert main(["verify", small_root.root, "--fast"]) == ContractError.exit_code
    assert f"PROBLEM    {small_root.root}: has a moth" in capsys.readouterr().out
    assert main(["verify", small_root.root, "--moon", "full"]) == 7
    assert [each.message for each in lint("web", str(packages.folder)) if each.where == "moth"] == ["web has one"]
    answer = reply("index", root=small_root.root, recipe=RECIPE, snapshot=DAYS[0])
    assert answer["map"].endswith(f"maps/{RECIPE}/{DAYS[0]}")


def test_a_part_that_is_broken_ends_the_verification(packages: Site, small_root: SmallRoot) -> None:
    packages.install("broken", CHECKS, {"moth": "brought_broken:check"})
    assert main(["verify", small_root.root, "--fast"]) == RecipeError.exit_code
