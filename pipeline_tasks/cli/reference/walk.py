"""Walks through the documentation: runs the commands of its outputs over the demo's crawl, in a folder that they know.

The folder is where a reader stands: `.refinery/demo` is what `refinery demo` writes there. A page may name paths of
another machine: its `/data/refined` is a copy of the demo's root, of which each page has its own, `/data/crawl` are
days of a crawl, `/data/texts` are texts with copies, and `/data/deduplicated` is a root that the page begins. Runs are
on the engine `local`, which gives the same rows as the others.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pipeline_tasks.cli.reference.outputs import files_of, with_outputs
from pipeline_tasks.recipe import LOCAL, RECIPES
from pipeline_tasks.shipped import python_path

Run = Callable[[Path, Sequence[str]], str]
"""How a command is run: in a folder, with arguments of `refinery`; the answer is what it prints."""

DEMO = "refinery demo"

ENGINES = {"demo", "run"}
"""Commands that refine, which take the engine as an option."""

ROOT = "/data/refined"
CRAWL = "/data/crawl"
TEXTS, DEDUPLICATED = "/data/texts", "/data/deduplicated"

RECIPE_FILES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "stricter.yaml": {"filter_quality": {"gopher_quality": {"min_doc_words": 200}}},
}
"""Recipes of pages: the demo's, with other params for some stages."""

SHORT_DAY = "2026-11-21"
"""A day of `CRAWL` in which nearly every page is too short."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The commands of one page, run in `folder`: where the demo is, and everything that the page's commands write."""

    folder: Path
    page: str
    run: Run

    @property
    def places(self) -> Mapping[str, Path]:
        """Where the paths of another machine are here."""
        own = self.folder / "pages" / self.page.removesuffix(".md")
        roots = {ROOT: own / "refined", DEDUPLICATED: own / "deduplicated"}
        return roots | {CRAWL: self.folder / "crawl", TEXTS: self.folder / "texts"}

    def printed(self, commands: Sequence[str]) -> str:
        """Run commands in order; return what the last one prints, with the paths that a reader has."""
        demo = self._demo()
        if tuple(commands) == (DEMO,):
            return demo
        self._provide(" ".join(commands))
        return [self._printed(command) for command in commands][-1]

    def _demo(self) -> str:
        """Run the demo unless it was run in the folder; return what it printed."""
        path = self.folder / "demo.txt"
        if not path.exists():
            path.write_text(self._printed(DEMO), encoding="utf-8")
        return path.read_text(encoding="utf-8")

    def _provide(self, text: str) -> None:
        """Write what commands name and nobody has written yet: a copy of the demo's root, days, and recipes."""
        demo, root, crawl = self.folder / ".refinery" / "demo", self.places[ROOT], self.places[CRAWL]
        if ROOT in text and not root.exists():
            shutil.copytree(demo / "root", root)
        if CRAWL in text and not crawl.exists():
            shutil.copytree(demo / "crawl", crawl)
            _write_short_day(crawl / SHORT_DAY)
        if TEXTS in text and not self.places[TEXTS].exists():
            _write_texts(self.places[TEXTS])
        for name, changes in RECIPE_FILES.items():
            if name in text:
                _write_recipe(self.folder / name, changes)

    def _printed(self, command: str) -> str:
        for name, place in self.places.items():
            command = command.replace(name, str(place))
        _, *arguments = shlex.split(command)
        text = self.run(self.folder, [*arguments, *(("--engine", LOCAL) if arguments[0] in ENGINES else ())])
        for name, place in self.places.items():
            text = text.replace(str(place), name)
        return text.replace(f"{self.folder}/", "")


def in_process_of_its_own(folder: Path, arguments: Sequence[str]) -> str:
    """Run a command of `refinery` as a shell does; return what it prints."""
    return subprocess.run(  # noqa: S603 -- this interpreter, our commands
        [sys.executable, "-m", "pipeline_tasks.cli", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": python_path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    ).stdout


def renewed(folder: Path, name: str, page: str, run: Run = in_process_of_its_own) -> str:
    """Return a page with the outputs that its commands print now."""
    for file, text in files_of(page).items():
        (folder / file).write_text(text, encoding="utf-8")
    return with_outputs(page, Walk(folder, name, run).printed)


def _write_recipe(path: Path, changes: Mapping[str, Mapping[str, Any]]) -> None:
    recipe = yaml.safe_load((RECIPES / "demo.yaml").read_text(encoding="utf-8"))
    recipe["stages"] |= {stage: recipe["stages"][stage] | params for stage, params in changes.items()}
    path.write_text(yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")


def _write_short_day(folder: Path) -> None:
    """Write a day of 60 pages, 6 of which are long enough for `extract`."""
    folder.mkdir()
    texts = [" ".join([f"Page {number} has a text."] * (20 if number % 10 == 0 else 1)) for number in range(60)]
    lines = [json.dumps({"url": f"https://example.org/{at}", "text": text}) + "\n" for at, text in enumerate(texts)]
    (folder / "a.jsonl").write_text("".join(lines), encoding="utf-8")


def _write_texts(folder: Path) -> None:
    """Write eight texts, the first two of them again as they are, and the next two again with a word more."""
    folder.mkdir()
    texts = [" ".join(f"word{number}of{text}" for number in range(60)) for text in range(8)]
    texts += [*texts[:2], *(f"{text} differs" for text in texts[2:4])]
    lines = [json.dumps({"id": f"row-{at:02}", "text": text}) + "\n" for at, text in enumerate(texts)]
    (folder / "a.jsonl").write_text("".join(lines), encoding="utf-8")
