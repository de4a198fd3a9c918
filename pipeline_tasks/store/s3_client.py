"""Builds boto3's S3 clients, and turns their errors into Refinery's, each with its way out."""

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pipeline_tasks.errors import ContractError, RecipeError, StorageBusy

ABSENT = ("404", "NoSuchKey", "NotFound", "NoSuchBucket")
"""Error codes of S3 servers for an object that does not exist."""

_BAD_CREDENTIALS = (
    "AccessDenied",
    "403",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
)

_OVERLOADED = ("SlowDown", "Throttling", "RequestTimeout", "503", "429")


def s3_client() -> Any:  # noqa: ANN401 -- boto3 builds its clients at run time
    """Return the client for this process's AWS environment."""
    return _client(_environment())


def require_bucket(bucket: str) -> None:
    """Raise RecipeError if a bucket does not exist."""
    _require_bucket(_environment(), bucket)


def _environment() -> tuple[tuple[str, str], ...]:
    """Return the variables that decide which server and which credentials a client is for."""
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))


@lru_cache(maxsize=8)
def _client(environment: tuple[tuple[str, str], ...]) -> Any:  # noqa: ANN401 -- boto3 builds its clients at run time
    import boto3
    from botocore.config import Config

    variables = dict(environment)
    own_server = "AWS_ENDPOINT_URL_S3" in variables or "AWS_ENDPOINT_URL" in variables
    style = {"addressing_style": "path"} if own_server else {}
    retries = {"mode": "standard"} if "AWS_MAX_ATTEMPTS" in variables else {"mode": "standard", "max_attempts": 8}
    session = boto3.session.Session()
    config = Config(s3=style, retries=retries, connect_timeout=10, read_timeout=60)
    region = variables.get("AWS_REGION") or session.region_name or "us-east-1"
    return session.client("s3", config=config, region_name=region)


@lru_cache(maxsize=64)
def _require_bucket(environment: tuple[tuple[str, str], ...], bucket: str) -> None:
    from botocore.exceptions import ClientError

    try:
        _client(environment).head_bucket(Bucket=bucket)
    except ClientError as error:
        if error_code(error) not in ABSENT:
            raise
        message = f"s3://{bucket}: this bucket does not exist; create it or correct the URI"
        raise RecipeError(message) from error


def error_code(error: BaseException) -> str:
    """Return the code of a server's error response, "" for an error without a response."""
    return str(_response(error).get("Error", {}).get("Code", ""))


def is_refusal(error: BaseException) -> bool:
    """Return whether the server responded that it will not do this, rather than that it cannot do it now."""
    response = _response(error)
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    return bool(response) and status < 500 and error_code(error) not in _OVERLOADED  # noqa: PLR2004 -- HTTP


def _response(error: BaseException) -> Mapping[str, Any]:
    from botocore.exceptions import ClientError

    return error.response if isinstance(error, ClientError) else {}


def translated(path: str, bucket: str, error: BaseException) -> Exception:
    """Return Refinery's error for boto3's; `path` is the object's URI."""
    from botocore.exceptions import NoCredentialsError, PartialCredentialsError

    if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
        return RecipeError(f"{path}: no S3 credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    if is_refusal(error):
        return _refusal(path, bucket, error)
    return StorageBusy(
        f"{path}: the object store did not answer ({str(error)[:300]}); it is tried again later. "
        "If it never answers, check AWS_ENDPOINT_URL and the network"
    )


def _refusal(path: str, bucket: str, error: BaseException) -> Exception:
    code = error_code(error)
    if code == "NoSuchBucket":
        return RecipeError(f"{path}: bucket {bucket} does not exist; create it or correct the URI")
    if code in _BAD_CREDENTIALS:
        return RecipeError(
            f"{path}: the object store refused the credentials ({code}); "
            "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the bucket's policy"
        )
    if code == "RequestTimeTooSkewed":
        return RecipeError(f"{path}: this machine's clock differs from the object store's; set it (NTP)")
    return ContractError(f"{path}: the object store refused the request ({code}: {str(error)[:300]})")
