"""`refinery new` writes a package with a part, and nothing where there is anything. `tests/stranger` runs what it writes."""

import ast
import json
import tomllib
from pathlib import Path

import pytest

from pipeline_tasks.cli.commands.new import taken, templates
from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError


@pytest.mark.parametrize("kind", templates())
def test_a_package_has_its_part_under_its_name_alone(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", kind, "loud_texts", "--to", str(tmp_path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    folder = tmp_path / "loud_texts"
    assert sorted(facts["files"]) == sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    )
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["name"] == "refinery-loud-texts"
    assert project["entry-points"] == {f"refinery.{kind}s": {"loud_texts": f"loud_texts:{kind.upper()}"}}
    module = ast.parse((folder / "loud_texts" / "__init__.py").read_text())
    assert kind.upper() in {
        target.id
        for node in module.body
        for target in (getattr(node, "targets", None) or [getattr(node, "target", None)])
        if isinstance(target, ast.Name)
    }
    texts = "".join((folder / file).read_text() for file in facts["files"])
    assert [word for word in (*templates()[kind].module.rsplit(".", 1), "a_part", "a_kind") if word in texts] == []


def test_the_next_commands_and_the_recipe_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "filter", "loud", "--to", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = tmp_path / "loud"
    assert lines[2:4] == [f"pip install -e {place}", f"pytest {place}"]
    assert lines[4].startswith(f"refinery run ROOT --recipe {place}/loud.yaml ")
    recipe = (place / "loud.yaml").read_text().splitlines()
    assert lines[-len(recipe) :] == recipe


@pytest.mark.parametrize("name", ["Loud", "loud-texts", "../loud", "", "class", "1st", "numpy", "json"])
def test_a_name_that_is_no_word_or_is_a_module_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "filter", name, "--to", str(tmp_path)]) == RecipeError.exit_code
    assert repr(name) in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", templates())
def test_a_name_of_a_part_of_ours_is_refused(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [name for name in taken(kind) if "-" not in name]
    assert names
    for name in names:
        assert main(["new", kind, name, "--to", str(tmp_path)]) == RecipeError.exit_code
        assert f"a {kind} {name!r}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loud").mkdir()
    assert main(["new", "stage", "loud", "--to", str(tmp_path)]) == RecipeError.exit_code
    assert str(tmp_path / "loud") in capsys.readouterr().err
    assert list((tmp_path / "loud").iterdir()) == []
