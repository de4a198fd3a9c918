"""Commands take the recipe that is named, or the only one there is; of several they take the default one or none."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.command import recipe_of
from pipeline_tasks.publish.logs import version_log

BUILT = {"corpus"}


def root_of(folder: Path, recipes: Sequence[str]) -> str:
    """A root with one version of each recipe."""
    for recipe in recipes:
        manifests = {"compose" if recipe in BUILT else "ingest": f"{recipe}/manifest.json@sha256:{'a' * 64}"}
        facts = {"recipe": recipe, "snapshot": "2026-11-01", "landing": "", "manifests": manifests, "verdicts": {}}
        version_log.append(str(folder), {**facts, "prefix": "p", "documents": 1, "tokens": 0, "sequences": 0})
    return str(folder)


@pytest.mark.parametrize(
    ("recipes", "named", "chosen"),
    [
        (("news",), "", "news"),
        (("news", "web"), "", "web"),
        (("news", "wiki"), "wiki", "wiki"),
        (("news", "news.trial", "corpus"), "", "news"),
        ((), "", "web"),
    ],
)
def test_the_recipe_is_the_named_one_the_only_one_or_the_default_one(
    recipes: Sequence[str], named: str, chosen: str, tmp_path: Path
) -> None:
    assert recipe_of(Namespace(root=root_of(tmp_path, recipes), recipe=named)) == chosen


@pytest.mark.parametrize("command", [["look funnel"], ["retract", "2026-11-01", "--reason", "spam"]])
def test_several_recipes_and_no_choice_are_refused_with_their_names(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = root_of(tmp_path, ["news", "wiki", "corpus"])
    words = [*command[0].split(), *command[1:2], root, *command[2:]]
    assert main(words) == RecipeError.exit_code
    assert "news, wiki;" in capsys.readouterr().err
    assert [len(version_log.log(root, recipe)) for recipe in ("news", "wiki")] == [1, 1]


def test_a_log_that_is_damaged_is_a_problem_of_verify_and_does_not_end_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = root_of(tmp_path, ["news", "wiki"])
    (tmp_path / "datasets/news/heads/000000000001").write_text(f"{'0' * 64}\n")
    assert main(["verify", root]) == ContractError.exit_code
    assert f"PROBLEM    {tmp_path}/datasets/news/" in capsys.readouterr().out
