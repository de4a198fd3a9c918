"""Write a package with a part of your own, which Refinery then has as one of ours: its module, its test, a recipe.

The package has its entry point, so that recipes know the part by its name once `pip install -e` has run.
"""

import argparse
import re
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path

from pipeline_tasks import seams
from pipeline_tasks.cli.whole_file import replace_whole
from pipeline_tasks.constraints import Word
from pipeline_tasks.demo import parts
from pipeline_tasks.demo.parts import Template
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_json, print_result

NAME = Word("[a-z][a-z0-9]*(_[a-z0-9]+)*", "lower-case letters, digits and single _, first a letter")

SEAM = "refinery.templates"
"""The seam of kinds of parts: each of its parts is a `Template`."""

RUN = "run ROOT --recipe {recipe} --input FOLDER"

TEMPLATES = {
    "stage": Template("pipeline_tasks.demo.parts.a_stage", RUN),
    "filter": Template("pipeline_tasks.demo.parts.a_filter", RUN),
}
"""The kinds of parts of the core."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the kind, the name, and where the package goes."""
    parser.add_argument("kind", choices=templates(), help="what the package brings")
    parser.add_argument("name", metavar="NAME", help=f"the part's name in recipes, and the package's: {NAME}")
    parser.add_argument("--to", default=".", metavar="FOLDER", help="folder for the folder NAME (this one)")
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Write the package, and print what comes next."""
    folder = Path(options.to, options.name)
    require_new(options.kind, options.name, folder)
    files = package(options.kind, options.name)
    for path, text in files.items():
        replace_whole(folder / path, text.encode(), parents=True)
    recipe = folder / f"{options.name}.yaml"
    commands = [
        f"pip install -e {folder}",
        f"pytest {folder}",
        f"refinery {templates()[options.kind].command.format(recipe=recipe)}",
    ]
    facts = {"folder": str(folder), "files": [*files], "next": commands}
    lines = files[recipe.name].splitlines()
    print_result(options, facts, [f"wrote {folder}: {', '.join(files)}", "", *commands, "", f"{recipe}:", *lines])
    return 0


def templates() -> Mapping[str, Template]:
    """Return the kinds of parts that can be written, with their templates: of the core, and those of packages."""
    return {**TEMPLATES, **{name: part.load(Template) for name, part in seams.all_parts(SEAM).items()}}


def require_new(kind: str, name: str, folder: Path) -> None:
    """Raise RecipeError unless a package of this name can be written, and installed beside what there is."""
    if not NAME.admits(name) or iskeyword(name):
        message = f"{name[:100]!r} is no name of a part; write {NAME}"
        raise RecipeError(message)
    if folder.exists():
        message = f"{folder} exists; remove it, write another name, or another folder by --to"
        raise RecipeError(message)
    whose = f"a {kind}" if name in taken(kind) else "a module" if find_spec(name) else ""
    if whose:
        message = f"there is {whose} {name!r} already; write another name"
        raise RecipeError(message)


def taken(kind: str) -> Collection[str]:
    """Return the names of the parts of a kind: ours, and those of packages that are installed."""
    from pipeline_tasks import cards, filters

    if kind == "stage":
        return (*cards.stage_names(), *cards.RESERVED)
    if kind == "filter":
        return filters.load_filters()
    return seams.known(f"refinery.{kind}s")


def package(kind: str, name: str) -> dict[str, str]:
    """Return the files of a package with a part, by their paths."""
    module = templates()[kind].module
    template = module.rpartition(".")[2]
    project = {"refinery-a-part": f"refinery-{name.replace('_', '-')}", "a_kind": f"{kind}s", "A_CARD": kind.upper()}
    files = {"pyproject.toml": _filled(Path(parts.__path__[0], "a_part.toml").read_text(), {**project, "a_part": name})}
    places = {
        f"{template}.py": f"{name}/__init__.py",
        f"{template}.json": f"{name}/{name}.json",
        f"test_{template}.py": f"test_{name}.py",
        f"{template}.yaml": f"{name}.yaml",
    }
    words = {module: name, template: name}
    place = _place(module)
    sources = {path: place / file for file, path in places.items() if (place / file).exists()}
    return {**files, **{path: _filled(file.read_text(), words) for path, file in sources.items()}}


def _place(module: str) -> Path:
    """Return the folder of a module's file."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _filled(text: str, words: Mapping[str, str]) -> str:
    """Return a template with other words in place of its own."""
    pattern = "|".join(map(re.escape, words))
    return re.sub(rf"(?<![a-z_])(?:{pattern})(?![a-z_])", lambda found: words[found[0]], text)
