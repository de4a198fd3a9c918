"""Takes S3 credentials from the connection `aws_default`, and the key of pseudonyms from `refinery_pii`."""

import os
from typing import Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

CONNECTION = "aws_default"
PII_CONNECTION = "refinery_pii"

EXTRAS = {
    "endpoint_url": "AWS_ENDPOINT_URL",
    "region_name": "AWS_REGION",
    "aws_session_token": "AWS_SESSION_TOKEN",
}
"""Fields of the connection's extra, named as the Amazon provider names them, and the variables that storage reads."""


def missing(*uris: object) -> bool:
    """Return whether a URI needs S3 credentials that the environment does not have."""
    return any(str(uri).startswith("s3://") for uri in uris) and not os.environ.get("AWS_ACCESS_KEY_ID")


def adopt_credentials(*uris: object) -> None:
    """Let this process (and the worker daemon that it starts) use the connection's credentials for S3 URIs."""
    if missing(*uris):
        try:
            _export(Connection.get(CONNECTION))
        except AirflowNotFoundException:
            return  # an instance profile or a credentials file may do, which boto3 finds by itself


def adopt_secret(variable: str) -> None:
    """Let this process use the connection's password as the secret that `variable` holds; "" needs none."""
    if variable and not os.environ.get(variable):
        try:
            password = Connection.get(PII_CONNECTION).password
        except AirflowNotFoundException:
            return  # the plan refuses the request, and says what to set
        if password:
            os.environ[variable] = str(password)


async def adopt_credentials_in_triggerer(*uris: object) -> None:
    """As `adopt_credentials`, for triggers."""
    if missing(*uris):
        try:
            _export(await Connection.async_get(CONNECTION))
        except AirflowNotFoundException:
            return


def _export(connection: Any) -> None:  # noqa: ANN401 -- an Airflow Connection
    if not connection.login:
        return
    settings = {"AWS_ACCESS_KEY_ID": connection.login, "AWS_SECRET_ACCESS_KEY": connection.password or ""}
    extra = connection.extra_dejson
    settings |= {variable: str(extra[name]) for name, variable in EXTRAS.items() if extra.get(name)}
    os.environ.update(settings)
