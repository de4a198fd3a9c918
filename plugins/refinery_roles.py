"""Says who may see what, by the permissions of Airflow's auth manager: Refinery has no list of users of its own.

Each route of the pages names the role that it needs, and a page that shows more to some asks `may_see`.
"""

from dataclasses import dataclass
from enum import StrEnum

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import BaseAuthManager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import ConnectionDetails, DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import HTTPException, Request
from refinery_credentials import CONNECTION
from refinery_purpose import FORBIDDEN, PurposeNeeded, purpose_of, require_purpose

from pipeline_tasks.recipe import STAGES


class Role(StrEnum):
    """What a user may see: counts; texts and pages that were kept; all texts, and what was found in them."""

    VIEWER = "viewer"
    CURATOR = "curator"
    STEWARD = "steward"


REFUSALS = {
    Role.CURATOR: "Texts of a crawl are shown to those who may approve a refused gate",
    Role.STEWARD: (
        "Rejected rows, texts before personal data is replaced, evidence and landed pages are shown to stewards: those "
        "who may edit Airflow's connection to the root"
    ),
}
"""What is said to those who have no such role."""

RAW = frozenset(STAGES[: STAGES.index("scrub_pii")])
"""Stages whose kept texts have personal data, where a recipe replaces it."""


@dataclass(frozen=True, slots=True)
class Seer:
    """Who is about to see something, the role that it needs, and what for."""

    name: str
    role: Role
    purpose: str


def is_curator(user: BaseUser, auth: BaseAuthManager[BaseUser] | None = None) -> bool:
    """Return whether a user may see kept texts: whoever may answer the form of a refused gate, which is about them."""
    auth = auth or get_auth_manager()
    return bool(auth.is_authorized_dag(method="PUT", access_entity=DagAccessEntity.HITL_DETAIL, user=user))


def is_steward(user: BaseUser, auth: BaseAuthManager[BaseUser] | None = None) -> bool:
    """Return whether a user may see every text: a curator who may edit the connection by which all of them are read.

    Whoever may edit it decides who reads the root anyway, so no new right is given.
    """
    auth = auth or get_auth_manager()
    details = ConnectionDetails(conn_id=CONNECTION)
    return is_curator(user, auth) and bool(auth.is_authorized_connection(method="PUT", details=details, user=user))


HOLDS = {Role.VIEWER: lambda _: True, Role.CURATOR: is_curator, Role.STEWARD: is_steward}
"""The function that says whether a user has a role."""


def curator(request: Request, user: GetUserDep) -> None:
    """Let curators see what a route shows, and have the look logged; 403 for others."""
    require(request, user, Role.CURATOR)


def steward(request: Request, user: GetUserDep) -> None:
    """Let stewards see what a route shows, and have the look logged; 403 for others."""
    require(request, user, Role.STEWARD)


def require(request: Request, user: BaseUser, role: Role) -> None:
    """Have the response of this request logged as a look of a user; 403 without the role, or a purpose if it is due."""
    if not HOLDS[role](user):
        raise HTTPException(FORBIDDEN, f"{REFUSALS[role]}. Ask for a role with that right.")
    name = user.get_name()
    require_purpose(request, name)
    known: Seer | None = getattr(request.state, "seer", None)
    if known is None or known.role is not Role.STEWARD:
        request.state.seer = Seer(name, role, purpose_of(request, name))


def may_see(request: Request, user: BaseUser, role: Role) -> bool:
    """Return whether a user is shown what needs a role, on a page that others see without it; then the look is logged.

    Who has named no purpose where one is due sees what others see.
    """
    if not HOLDS[role](user):
        return False
    try:
        require(request, user, role)
    except PurposeNeeded:
        return False
    return True
