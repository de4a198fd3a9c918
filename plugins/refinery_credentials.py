"""Takes S3 credentials from the connection `aws_default` where the environment has none."""

import os
from typing import Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

CONNECTION = "aws_default"

EXTRAS = {
    "endpoint_url": "AWS_ENDPOINT_URL",
    "region_name": "AWS_REGION",
    "aws_session_token": "AWS_SESSION_TOKEN",
}
"""Fields of the connection's extra, named as the Amazon provider names them, and the variables that storage reads."""


def wanted(*uris: object) -> bool:
    """Tell whether S3 is spoken of and the environment does not say who is asking."""
    return any(str(uri).startswith("s3://") for uri in uris) and not os.environ.get("AWS_ACCESS_KEY_ID")


def adopt(*uris: object) -> None:
    """Let this process (and the warm host that it starts) use the connection's credentials for S3 URIs."""
    if wanted(*uris):
        try:
            _export(Connection.get(CONNECTION))
        except AirflowNotFoundException:
            return  # an instance profile or a credentials file may do, as boto3 finds them


async def adopt_in_triggerer(*uris: object) -> None:
    """As `adopt`, for triggers."""
    if wanted(*uris):
        try:
            _export(await Connection.async_get(CONNECTION))
        except AirflowNotFoundException:
            return


def _export(found: Any) -> None:  # noqa: ANN401 -- an Airflow Connection
    if not found.login:
        return
    settings = {"AWS_ACCESS_KEY_ID": found.login, "AWS_SECRET_ACCESS_KEY": found.password or ""}
    extra = found.extra_dejson
    settings |= {variable: str(extra[name]) for name, variable in EXTRAS.items() if extra.get(name)}
    os.environ.update(settings)
