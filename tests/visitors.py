"""Who visits the pages: users of Airflow's simple auth manager, whose roles are names."""

from typing import Any


def be(app: Any, name: str, role: str) -> None:
    """Let the visitor of an app be this user, until the test ends."""
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.api_fastapi.core_api.security import get_user

    app.dependency_overrides[get_user] = lambda: SimpleAuthManagerUser(username=name, role=role)
