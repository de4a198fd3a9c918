"""Policies of retention: by kind of object, after how many days it expires or goes to a colder storage class."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pipeline_tasks.binding import bind_fields, require_known, require_mapping
from pipeline_tasks.constraints import Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.nearest import nearest
from pipeline_tasks.recipe import RECIPES
from pipeline_tasks.store.s3.store import STANDARD
from pipeline_tasks.upkeep.vacuum import DAY, GRACE
from pipeline_tasks.yaml_file import read_yaml

POLICIES = RECIPES / "retention"
"""The folder of policies."""

REJECTS, QUARANTINE, REPORTS, EXPORTS = "rejects", "quarantine", "reports", "exports"
RECEIPTS, CACHE, INTERMEDIATE, VERSIONS = "receipts", "cache", "intermediate", "versions"

EXPIRE, COLD = "expire_days", "cold_days"

KINDS: Mapping[str, tuple[str, ...]] = {
    REJECTS: (EXPIRE, COLD),
    QUARANTINE: (EXPIRE, COLD),
    REPORTS: (EXPIRE,),
    EXPORTS: (EXPIRE, COLD),
    RECEIPTS: (EXPIRE,),
    CACHE: (EXPIRE,),
    INTERMEDIATE: (COLD,),
    VERSIONS: (COLD,),
}
"""Kinds of objects, and what a policy may do with each."""

WHY_NOT: Mapping[tuple[str, str], str] = {
    (INTERMEDIATE, EXPIRE): "a run that goes on from a stage needs its shards, and manifests name them",
    (
        VERSIONS,
        EXPIRE,
    ): "entries of the log, exports and training runs name them; `refinery keep vacuum --expire` removes stages "
    "that no version names",
    (REPORTS, COLD): "they are smaller than what a colder class bills",
    (RECEIPTS, COLD): "they are smaller than what a colder class bills",
    (CACHE, COLD): "each run reads it",
}
"""Why a kind does not expire, or does not go to another class."""

COLDER = ("STANDARD_IA", "ONEZONE_IA", "GLACIER_IR")
"""Storage classes whose objects are read without a restore, and cost less for as long as they are not read."""

LEAST_DAYS = GRACE / DAY
MOST_DAYS = 36_500

Days = Annotated[int, Range(LEAST_DAYS, MOST_DAYS)]


@dataclass(frozen=True, slots=True)
class Rule:
    """What becomes of the objects of a kind, in days since the work that wrote them was committed; None: nothing.

    The days are no fewer than the grace of `vacuum`, in which a run may still write what names an object.
    """

    expire_days: Days | None = None
    cold_days: Days | None = None
    storage_class: Literal["STANDARD_IA", "ONEZONE_IA", "GLACIER_IR", ""] = ""

    def __post_init__(self) -> None:
        if (self.cold_days is None) != (self.storage_class == ""):
            message = "cold_days and storage_class go together: when, and into which class"
            raise ValueError(message)
        if self.expire_days is None and self.cold_days is None:
            message = "it has neither expire_days nor cold_days; leave the kind out to keep it as it is"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Price:
    """What a storage class costs: a GB (2^30 bytes) in a month, and 1,000 objects that are brought into it.

    Each object is billed as if it had `least_bytes`, and for `least_days`.
    """

    gb_month: Annotated[float, Range(0, 1_000)]
    least_bytes: Annotated[int, Range(0, 1 << 30)] = 0
    least_days: Annotated[int, Range(0, MOST_DAYS)] = 0
    per_1000: Annotated[float, Range(0, 1_000)] = 0.0

    def month(self, size: int) -> float:
        """Return what an object of so many bytes costs in a month."""
        return max(size, self.least_bytes) / (1 << 30) * self.gb_month


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by storage class, where they are from, and as of when."""

    source: str
    as_of: str
    classes: Mapping[str, Price]
    currency: str = "USD"


@dataclass(frozen=True, slots=True)
class _Written:
    """A policy's keys as written; kinds and classes are checked one by one."""

    kinds: Mapping[str, Mapping[str, object]]
    prices: Mapping[str, object]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy: its name, the rule of each kind that has one, and what storage costs."""

    name: str
    title: str
    rules: Mapping[str, Rule]
    prices: Prices

    def expire_days(self, kind: str) -> int | None:
        """Return after how many days objects of a kind expire, None if they never do."""
        rule = self.rules.get(kind)
        return rule.expire_days if rule else None


def policy_names(folder: Path = POLICIES) -> list[str]:
    """Return the names of the policies in `folder`, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def load_policy(name: str, folder: Path = POLICIES) -> Policy:
    """Read a policy by name, or by path when `name` ends in `.yaml`; RecipeError names what is wrong in it."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"
    if not path.exists():
        names = policy_names(folder)
        message = (
            f"no retention policy {name[:100]!r}{nearest(name, names)}; there are: {', '.join(names)}; for one of your "
            "own give the path of its YAML file"
        )
        raise RecipeError(message)
    return parse_policy(read_yaml(path), str(path))


def parse_policy(raw: object, where: str) -> Policy:
    """Check a policy's YAML; RecipeError names what is unknown, missing or wrong."""
    written = bind_fields(_Written, require_mapping(raw, where), where)
    require_known(written.kinds, tuple(KINDS), f"{where}: kinds")
    prices = _prices(written.prices, f"{where}: prices")
    rules = {kind: _rule(kind, fields, prices, f"{where}: kinds: {kind}") for kind, fields in written.kinds.items()}
    return Policy(Path(where).stem, written.title, rules, prices)


def _prices(raw: Mapping[str, object], where: str) -> Prices:
    written = dict(raw)
    by_name = require_mapping(written.get("classes", {}), f"{where}: classes")
    require_known(by_name, (STANDARD, *COLDER), f"{where}: classes")
    classes = {
        name: bind_fields(Price, require_mapping(fields, f"{where}: classes: {name}"), f"{where}: classes: {name}")
        for name, fields in by_name.items()
    }
    if STANDARD not in classes:
        message = f"{where}: classes: {STANDARD} is required: savings are against it"
        raise RecipeError(message)
    return replace(bind_fields(Prices, {**written, "classes": {}}, where), classes=classes)


def _rule(kind: str, fields: Mapping[str, object], prices: Prices, where: str) -> Rule:
    for name in (EXPIRE, COLD):
        if name in fields and name not in KINDS[kind]:
            message = f"{where}: {name} does nothing with {kind}: {WHY_NOT[kind, name]}; remove it"
            raise RecipeError(message)
    rule = bind_fields(Rule, require_mapping(fields, where), where)
    if rule.storage_class and rule.storage_class not in prices.classes:
        message = f"{where}: prices: classes has no {rule.storage_class}; add what it costs"
        raise RecipeError(message)
    if rule.expire_days is not None and rule.cold_days is not None:
        least = rule.cold_days + prices.classes[rule.storage_class].least_days
        if rule.expire_days < least:
            message = (
                f"{where}: expire_days is {rule.expire_days}; {rule.storage_class} bills objects until day {least}: "
                f"write {least} or more, or remove cold_days"
            )
            raise RecipeError(message)
    return rule
