"""A part of a package that is not installed reads as a typing error: the refusal names the package, if the root does."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import dump, identified, manifest_path
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest
from tests.inspect.test_whatif import published

CALM = "refinery-calm 9.7"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root as a machine left it that has the filter `calm` of another package."""
    _, version = published(tmp_path)
    known = read_manifest(str(tmp_path), version.manifests["filter_quality"])
    params, libraries = {**known.params, "calm": {"most": 3}}, {**known.libraries, "refinery-calm": "9.7"}
    manifest = identified(replace(known, params=params, libraries=libraries))
    path = manifest_path(manifest.stage, manifest.fingerprint)
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_bytes(dump(manifest))
    entry = {"recipe": "web", "snapshot": "s", "landing": "", "manifests": {"filter_quality": path}, "verdicts": {}}
    version_log.append(str(tmp_path), entry | {"prefix": "", "documents": 0, "tokens": 0, "sequences": 0})
    return tmp_path


def recipe(folder: Path, params: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(f"stages: {{ingest: {{}}, extract: {{}}, filter_quality: {params}}}\n")
    return str(path)


def test_whatif_names_the_package_that_is_not_here(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", str(root), "--set", "gopher_quality.min_doc_words=3"]) == RecipeError.exit_code
    err = capsys.readouterr().err
    assert "unknown key 'calm' (did you mean 'dclm'?), or install the package that brings it" in err
    assert f"{root} was refined with {CALM}, not installed here: install what is missing" in err


@pytest.mark.parametrize("params", ["{calm: {most: 3}}", "{profiles: [calm]}"])
def test_a_recipe_of_a_filter_that_is_not_here_says_that_a_package_may_bring_it(
    params: str, root: Path, tmp_path_factory: pytest.TempPathFactory, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path_factory.mktemp("landed")
    named = recipe(folder, params)
    assert main(["lint", named]) == RecipeError.exit_code
    assert "install the package that brings it" in capfd.readouterr().out
    assert main(["lint", named, "--root", str(root)]) == RecipeError.exit_code
    assert f"was refined with {CALM}" in capfd.readouterr().out
    (folder / "a.jsonl").write_text('{"text": "A ferry leaves."}')
    for command in (["run", str(root), "--input", str(folder)], ["retract", "2026-11-19", str(root)]):
        assert main([*command, "--recipe", named]) == RecipeError.exit_code
        assert f"was refined with {CALM}" in capfd.readouterr().err


def test_a_refusal_of_another_kind_names_no_package(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(root), "--recipe", "webb"]) == RecipeError.exit_code
    assert CALM not in capsys.readouterr().err
