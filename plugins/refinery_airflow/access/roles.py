"""Says who may see what, by the permissions of Airflow's auth manager: Refinery has no list of users of its own.

Each route of the pages names the role that it needs, and a page that shows more to some asks `may_see`. A right on the
DAG of a recipe is one on its pages; a page of no one recipe needs it for all of the root.
"""

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import BaseAuthManager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import ConnectionDetails, DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.sdk.configuration import conf
from fastapi import HTTPException, Request

from pipeline_tasks.ask.question import Role
from pipeline_tasks.deployment import deployed
from pipeline_tasks.errors import ContractError
from pipeline_tasks.flow.plan import DEFAULT, dag_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.ablation_log import ATTRIBUTION, Ablation, ablations
from pipeline_tasks.recipe import untried
from refinery_airflow.access.purpose import FORBIDDEN, PurposeNeeded, purpose_of, require_purpose
from refinery_airflow.runs.credentials import CONNECTION, DEFAULTS
from refinery_airflow.runs.newest import recipes_with_runs
from refinery_airflow.runs.run import root

REFUSALS = {
    Role.VIEWER: "Pages of a recipe are shown to those who may read its DAG, and pages of all recipes to those who may "
    "read all of them",
    Role.CURATOR: "Texts of a crawl are shown to those who may approve a refused gate",
    Role.STEWARD: (
        "Rejected rows, texts before personal data is replaced, evidence and landed pages are shown to stewards: those "
        "who may edit Airflow's connection to the root"
    ),
}
"""What is said to those who have no such role."""


@dataclass(frozen=True, slots=True)
class Seer:
    """Who is about to see something, the role that it needs, and what for."""

    name: str
    role: Role
    purpose: str


VERDICT = "/verdicts/{number}"

OPEN = ("/", "/page", "/purpose", "/static/{name}")
"""Routes of no root that show nothing of a recipe to who may not read its DAG."""

LISTED = "/verdicts"
"""A route of a root that lists what its reader may see."""


def is_reader(user: BaseUser, recipe: str, auth: BaseAuthManager[BaseUser] | None = None) -> bool:
    """Return whether a user may see counts of a recipe: whoever may read its DAG."""
    return _may(user, recipe, auth, method="GET")


def is_curator(user: BaseUser, recipe: str, auth: BaseAuthManager[BaseUser] | None = None) -> bool:
    """Return whether a user may see kept texts of a recipe: whoever may answer the form of its refused gates."""
    return _may(user, recipe, auth, method="PUT", access_entity=DagAccessEntity.HITL_DETAIL)


def is_steward(user: BaseUser, recipe: str, auth: BaseAuthManager[BaseUser] | None = None) -> bool:
    """Return whether a user may see every text: a curator who may edit the connection by which all of them are read.

    Whoever may edit it decides who reads the root anyway, so no new right is given.
    """
    auth = auth or get_auth_manager()
    of_recipe = deployed(untried(recipe))
    default = next((each for kind, each in DEFAULTS.items() if of_recipe.its_root.startswith(kind)), CONNECTION)
    details = ConnectionDetails(conn_id=of_recipe.connections.root or default)
    can_edit = auth.is_authorized_connection(method="PUT", details=details, user=user)
    return bool(can_edit) and is_curator(user, recipe, auth)


def _may(user: BaseUser, recipe: str, auth: BaseAuthManager[BaseUser] | None, **asked: object) -> bool:
    """Return whether a user has a right on a DAG that makes versions of a recipe: one refines, the other builds."""
    auth = auth or get_auth_manager()
    dags = (dag_of(untried(recipe)), f"build_{untried(recipe)}")
    return any(auth.is_authorized_dag(details=_details(dag), user=user, **asked) for dag in dags)


def _details(dag: str) -> DagDetails:
    from airflow.models.dag import DagModel

    has_teams = conf.getboolean("core", "multi_team", fallback=False)
    return DagDetails(id=dag, team_name=DagModel.get_team_name(dag) if has_teams else None)


HOLDS = {Role.VIEWER: is_reader, Role.CURATOR: is_curator, Role.STEWARD: is_steward}
"""The function that says whether a user has a role for a recipe."""


UNCLEARED = re.compile(r"\brecord_id\b")
"""A column of kept documents that is as its source wrote it, so that it may have personal data."""

NAMING_COLUMNS = ("by", "across", "column", "where", "more")
"""Fields of addresses that name columns."""


def holds(request: Request, user: BaseUser, role: Role) -> bool:
    """Return whether a user has a role for the recipe that a page is of, or for every one if it is of none."""
    return all(HOLDS[_needed(request, role)](user, recipe) for recipe in _recipes_of(request))


def _needed(request: Request, role: Role) -> Role:
    """Return the role that a request needs: by a column that no stage clears that of a steward for one of a curator."""
    fields = request.query_params.multi_items()
    is_uncleared = any(name in NAMING_COLUMNS and UNCLEARED.search(value) for name, value in fields)
    return Role.STEWARD if role is Role.CURATOR and is_uncleared else role


def _recipes_of(request: Request) -> list[str]:
    if named := request.path_params.get("recipe"):
        return [str(named)]
    if request.scope["route"].path == VERDICT:
        return _recipes_of_number(str(request.path_params["number"]))
    return _all_recipes()


def _all_recipes() -> list[str]:
    return sorted({*version_log.recipes(root()), *recipes_with_runs(root())}) or [DEFAULT]


def refuse(role: Role) -> NoReturn:
    """Raise the 403 of who has not a role."""
    raise HTTPException(FORBIDDEN, f"{REFUSALS[role]}. Ask for a role with that right.")


def _recipes_of_number(number: str) -> list[str]:
    """Return the recipes of a verdict; all of the root where it has none of this number, or its log is damaged."""
    known = _all_recipes()
    with contextlib.suppress(ContractError):
        for ablation in ablations(root()):
            if str(ablation.number) == number:
                return _recipes_of_verdict(ablation, known)
    return known


def _recipes_of_verdict(ablation: Ablation, known: list[str]) -> list[str]:
    """Return the recipes whose readers together see a verdict: all that are `known` of the root if one is not.

    A dataset that was made for the comparison alone is seen by the readers of what it was made from, and a recipe
    without a stage by those of the whole one.
    """
    arms = ablation.arms[:1] if ablation.kind == ATTRIBUTION else ablation.arms
    own = {name for arm in arms for name in arm.made_from or (arm.recipe,)}
    own |= {arm.recipe for arm in arms}.intersection(known)
    return sorted(own) if own.issubset(known) else known


def verdicts_of(user: BaseUser) -> Callable[[Ablation], bool]:
    """Return what says whether a user may see a verdict: who may read the DAGs of all its recipes."""
    known = _all_recipes()
    reads = {recipe: is_reader(user, recipe) for recipe in known}
    return lambda ablation: all(reads[recipe] for recipe in _recipes_of_verdict(ablation, known))


def reader(request: Request, user: GetUserDep) -> None:
    """Let those see a page who may read the DAG of its recipe; 403 for others."""
    if request.scope["route"].path not in (*OPEN, LISTED) and not holds(request, user, Role.VIEWER):
        refuse(Role.VIEWER)


def curator(request: Request, user: GetUserDep) -> None:
    """Let curators see what a route shows, and have the look logged; 403 for others."""
    require(request, user, Role.CURATOR)


def steward(request: Request, user: GetUserDep) -> None:
    """Let stewards see what a route shows, and have the look logged; 403 for others."""
    require(request, user, Role.STEWARD)


def require(request: Request, user: BaseUser, role: Role) -> None:
    """Have the response of this request logged as a look of a user; 403 without the role, or a purpose if it is due."""
    role = _needed(request, role)
    if not holds(request, user, role):
        refuse(role)
    name = user.get_name()
    require_purpose(request, name)
    known: Seer | None = getattr(request.state, "seer", None)
    if known is None or known.role is not Role.STEWARD:
        request.state.seer = Seer(name, role, purpose_of(request, name))


def may_see(request: Request, user: BaseUser, role: Role) -> bool:
    """Return whether a user is shown what needs a role, on a page that others see without it; then the look is logged.

    Who has named no purpose where one is due sees what others see.
    """
    if not holds(request, user, role):
        return False
    try:
        require(request, user, role)
    except PurposeNeeded:
        return False
    return True
