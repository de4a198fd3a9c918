"""The core asks the cards of stages what it wants to know of them, and names none."""

import ast
from collections import defaultdict
from pathlib import Path

from pipeline_tasks.stages import NAMES

PROJECT = Path(__file__).parents[1]
ASIDE = ("stages", "demo")
"""Rooms of `pipeline_tasks` that may name stages: their own, and the demo, which tells of some."""

WORDS = {
    "pipeline_tasks/cli/reference/walk.py": "the recipe that the first walk of the docs changes",
    "pipeline_tasks/inspect/why/__init__.py": "a key of its JSON",
    "pipeline_tasks/inspect/why/standing.py": "a key of its JSON",
    "pipeline_tasks/publish/takedowns.py": "a column",
    "pipeline_tasks/recipe.py": "the stage of every build that takes the list of what was taken down, and that no recipe names",
    "pipeline_tasks/scorers/topics.py": "a key of a model's file",
    "pipeline_tasks/store/taken_down.py": "a column",
    "pipeline_tasks/store/taken_down_lists.py": "a column, and a key of its JSON",
    "pipeline_tasks/report/croissant.py": "a property of Croissant",
    "pipeline_tasks/text/page/visible.py": "a tag of HTML",
    "pipeline_tasks/text/urls/takedown.py": "a column",
    "pipeline_tasks/training/dataset.py": "a key of a loader's state",
    "plugins/refinery_airflow/tasks/sources.py": "what is done about deletions of a source",
    "plugins/refinery_rights/questions.py": "a command",
    "plugins/refinery_rights/takedown.py": "a key of its JSON, and a word of its messages",
    "plugins/refinery_study/map/plot.py": "a property of Vega",
    "plugins/refinery_sources/recipe.py": "what is done about deletions of a source",
    "plugins/refinery_models/commands/train_topics.py": "a key of a model's file",
    "plugins/refinery_models/topics.py": "a key of a command's JSON",
}
"""Files with a word that is a stage's name, too, and what it is there."""


def test_no_file_names_a_stage() -> None:
    core = [
        path for path in (PROJECT / "pipeline_tasks").rglob("*.py") if path.parts[len(PROJECT.parts) + 1] not in ASIDE
    ]
    found = defaultdict[str, list[str]](list)
    for path in sorted([*core, *(PROJECT / "plugins").rglob("*.py"), *(PROJECT / "dags").glob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in NAMES:
                found[path.relative_to(PROJECT).as_posix()].append(f"{node.lineno}: {node.value}")
    assert {file: names for file, names in found.items() if file not in WORDS} == {}
    assert sorted({*WORDS} - {*found}) == [], "no longer needed"


MOST_IMPORTS = 36
"""Lines outside of `ASIDE` that import from the module of a stage, as their question is about this one alone.

They go down: with a facet, or to the extension that owns the stage.
"""


def test_no_more_lines_import_a_stage() -> None:
    lines = [
        f"{path.relative_to(PROJECT)}:{at}"
        for folder in ("pipeline_tasks", "plugins", "dags")
        for path in (PROJECT / folder).rglob("*.py")
        if path.parts[len(PROJECT.parts) + 1] not in ASIDE
        for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if line.lstrip().startswith(("from pipeline_tasks.stages import ", "from pipeline_tasks.stages."))
        and not line.endswith("import NAMES")
    ]
    assert len(lines) == MOST_IMPORTS, "\n".join(lines)
