"""Asks for what a user looks at texts today, and keeps it."""

from typing import Annotated

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, Field

from pipeline_tasks.store.access_log import LONGEST as LONGEST_PURPOSE
from refinery_airflow.access.looks import LookRoute, Shown
from refinery_airflow.access.purpose import (
    form_token,
    is_form_token,
    keep_purpose,
    own_address,
    purpose_of,
    require_own_form,
)
from refinery_airflow.pages.fields import SEE_OTHER, Term
from refinery_airflow.pages.rendering import show

router = APIRouter(route_class=LookRoute)


class PurposeForm(BaseModel):
    """What the form sends that asks for what somebody looks at texts."""

    purpose: str = Field("", max_length=LONGEST_PURPOSE)
    following: str = Field("", max_length=8192)
    token: str = Field("", max_length=100)


@router.get("/purpose")
def purpose_page(request: Request, user: GetUserDep, following: Term = "") -> HTMLResponse:
    """Ask for what the user looks at texts today."""
    return purpose_form(user.get_name(), purpose_of(request, user.get_name()), following)


@router.post("/purpose")
def purpose_answer(request: Request, user: GetUserDep, form: Annotated[PurposeForm, Form()]) -> Response:
    """Keep the purpose in the browser until the end of the day, and show the page that was asked for."""
    require_own_form(request, has_token=is_form_token(form.token, user.get_name()))
    answer = RedirectResponse(own_address(form.following), SEE_OTHER)
    keep_purpose(request, answer, user.get_name(), form.purpose)
    return answer


def purpose_form(user: str, purpose: str, following: str, message: str = "") -> Shown:
    """Return the page of the form that asks a user for the purpose, and leads on to the page that is `following`."""
    values = {"token": form_token(user), "following": own_address(following), "longest": LONGEST_PURPOSE}
    return show("purpose.html", purpose=purpose, message=message, **values)
