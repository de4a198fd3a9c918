"""Gathers what the page of the foreign document shows: five documents of a draw, and how often readers find it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import quote, urlencode

from refinery_study.intruder import outcome_line
from refinery_study.intruder.answers import Found, IntruderAnswer, answers, found, save
from refinery_study.intruder.drawing import CHANCE, Draw, Population, draw, population, rows_of, schema_of
from refinery_study.intruder.groups import groupable, grouping
from refinery_study.read.sample import Sampled, read_drawn

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from refinery_airflow.runs.run import base
from refinery_airflow.texts.read import MOST_ROWS, token_of

SHOWN = 3_000
"""Characters of a text that are shown."""

USUAL = ("score", "language")
"""Columns of which the first that a version has groups its documents unless another is named."""

OTHERS = "Choose one of the five documents that are shown."


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for: the grouping as it is written, the group of the four ("" for any), and the draw's seed."""

    by: str = ""
    group: str = ""
    seed: int = 1

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The fields of an address."""
        return [(name, str(value)) for name, value in (("by", self.by), ("group", self.group)) if value] + [
            ("seed", str(self.seed))
        ]


@dataclass(frozen=True, slots=True)
class IntruderPage:
    """The page: the draw with its texts, the reader's answer to it, and the shares of all answers to the grouping.

    A user who may not read texts sees `found` alone.
    """

    version: Version
    asked: Asked
    columns: Sequence[str]
    found: Found
    groups: Sequence[str] = ()
    drawn: Draw | None = None
    documents: Sequence[Sampled] = ()
    given: IntruderAnswer | None = None
    token: str = ""
    message: str = ""

    @property
    def chance(self) -> float:
        """The share of right answers by chance."""
        return CHANCE

    @property
    def column(self) -> str:
        """The column that groups."""
        return self.asked.by.partition("/")[0]

    @property
    def bands(self) -> str:
        """The number of bands, "" for a column whose values are the groups."""
        return self.asked.by.partition("/")[2]

    @property
    def outcome(self) -> str:
        """Whether the reader's answer is right, in one line."""
        return outcome_line(self.given) if self.given else ""

    @property
    def here(self) -> str:
        """The address of this draw."""
        return address_of(self.version, self.asked)

    @property
    def following(self) -> str:
        """The address of the next draw."""
        return address_of(self.version, replace(self.asked, seed=self.asked.seed + 1))

    def command(self, root: str) -> str:
        """Return the command that asks the same."""
        named = [
            "refinery",
            "look",
            "intruder",
            root,
            "--recipe",
            self.version.recipe,
            "--snapshot",
            self.version.snapshot,
        ]
        group = ["--group", self.asked.group] if self.asked.group else []
        return shlex.join([*named, "--by", self.asked.by, *group, f"--seed={self.asked.seed}"])


def address_of(version: Version, asked: Asked) -> str:
    """Return the address of a draw."""
    path = f"{quote(version.recipe, safe='')}/{quote(version.snapshot, safe='')}"
    return f"{base()}/intruder/{path}?{urlencode(asked.fields)}"


def intruder_page(root: str, version: Version, asked: Asked, reader: str = "") -> IntruderPage:
    """Return the page of a draw for a reader, or without one the shares alone.

    RecipeError for a training dataset. What else is wrong is a message of the page.
    """
    schema = schema_of(root, version)
    columns = groupable(schema)
    usual = next((name for name in USUAL if name in columns), columns[0] if columns else "")
    asked = replace(asked, by=asked.by or usual)
    page = IntruderPage(version, asked, columns, found([]))
    try:
        asked = replace(asked, by=grouping(asked.by, schema).name)
        given = answers(root, version.recipe, asked.by)
        page = replace(page, asked=asked, found=found(given))
        return _with_draw(root, page, given, reader) if reader else page
    except RecipeError as error:
        return replace(page, message=str(error))


def _with_draw(root: str, page: IntruderPage, given: Sequence[IntruderAnswer], reader: str) -> IntruderPage:
    documents = population_of(root, page.version, page.asked.by)
    page = replace(page, groups=documents.names)
    drawn = draw(documents, page.asked.seed, page.asked.group)
    own = next((each for each in given if each.reader == reader and each.ids == drawn.ids), None)
    texts = read_drawn(root, page.version, drawn.documents)
    return replace(page, drawn=drawn, documents=texts, given=own, token=token_of(reader, page.version))


def population_of(root: str, version: Version, by: str) -> Population:
    """Return the documents that are drawn from; RecipeError where a request would look at too many rows."""
    return _population(root, version.recipe, version.number, by)


@lru_cache(maxsize=8)
def _population(root: str, recipe: str, number: int, by: str) -> Population:
    """As `population_of`; a version never changes."""
    [version] = [each for each in version_log.versions(root, recipe) if each.number == number]
    if rows_of(root, version) > MOST_ROWS:
        message = (
            f"snapshot {version.snapshot} has {rows_of(root, version):,} documents, and a page draws among "
            f"{MOST_ROWS:,}; the command below has no limit"
        )
        raise RecipeError(message)
    return population(root, version, grouping(by, schema_of(root, version)))


def answered(root: str, version: Version, asked: Asked, reader: str, form: Mapping[str, str]) -> str:
    """Store which document a reader chose; return the address of the draw, which now says which one was foreign.

    RecipeError for a document that the draw does not show.
    """
    by = grouping(asked.by, schema_of(root, version)).name
    drawn = draw(population_of(root, version, by), asked.seed, asked.group)
    if form["chosen"] not in drawn.ids:
        raise RecipeError(OTHERS)
    save(root, version, by, drawn, form["chosen"], reader)
    return address_of(version, replace(asked, by=by))
