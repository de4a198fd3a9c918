"""Builds boto3's S3 clients for this process's AWS environment, or a named store, and asks for their buckets."""

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store.named_store import NamedStore
from pipeline_tasks.store.s3_errors import ABSENT, error_code, repeat_requests, translated
from pipeline_tasks.store.s3_waits import count_waits

QUICK, QUICK_TRIES = {"connect_timeout": 5, "read_timeout": 10}, 3
"""Timeouts of the question before a run: a wrong address or credential is found within seconds."""

PATIENT = {"connect_timeout": 10, "read_timeout": 60}
"""Timeouts of requests of a run."""

MOST_TRIES = "AWS_MAX_ATTEMPTS"
"""The variable of boto3 that says how often a request is sent."""


def s3_client(named: NamedStore | None = None) -> Any:  # noqa: ANN401 -- boto3 builds its clients at run time
    """Return the client for this process's AWS environment, or of a named store, of which that says nothing."""
    if named is not None:
        return _named_client(named, named.keys, os.getpid())
    return _client(_environment(), os.getpid())


def require_bucket(bucket: str) -> None:
    """Raise RecipeError if a bucket does not exist."""
    _require_bucket(_environment(), bucket)


def _environment() -> tuple[tuple[str, str], ...]:
    """Return the variables that decide which server and which credentials a client is for."""
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))


@lru_cache(maxsize=8)
def _client(environment: tuple[tuple[str, str], ...], process: int) -> Any:  # noqa: ANN401 -- as above
    del process  # a forked process must not answer on the connections of its parent
    variables = dict(environment)
    return _new_client(variables, PATIENT, _tries(variables))


@lru_cache(maxsize=8)
def _named_client(named: NamedStore, keys: tuple[str, str, str], process: int) -> Any:  # noqa: ANN401 -- as above
    from botocore import UNSIGNED

    del process  # as above
    key, secret, token = (part or None for part in keys)
    config = {"ignore_configured_endpoint_urls": True, **({} if key else {"signature_version": UNSIGNED})}
    given = {"endpoint_url": named.endpoint or None, "region_name": named.region}
    given |= {"aws_access_key_id": key, "aws_secret_access_key": secret, "aws_session_token": token}
    client = _session().client("s3", config=_config(own_server=bool(named.endpoint), **PATIENT, **config), **given)
    return _patient(client, _tries(os.environ))


def _new_client(variables: Mapping[str, str], options: Mapping[str, Any], tries: int | None) -> Any:  # noqa: ANN401 -- as above
    own_server = "AWS_ENDPOINT_URL_S3" in variables or "AWS_ENDPOINT_URL" in variables
    session = _session()
    region = variables.get("AWS_REGION") or session.region_name or "us-east-1"
    return _patient(session.client("s3", config=_config(own_server=own_server, **options), region_name=region), tries)


def _session() -> Any:  # noqa: ANN401 -- as above
    import boto3
    import botocore.session

    core = botocore.session.get_session()
    core.register_component("data_loader", _models(core.get_config_variable("data_path") or ""))
    return boto3.session.Session(botocore_session=core)


def _config(*, own_server: bool, **options: Any) -> Any:  # noqa: ANN401 -- as above
    from botocore.config import Config

    style = {"addressing_style": "path"} if own_server else {}
    retries = {"mode": "standard", "total_max_attempts": 1}  # ours are those of `s3_errors`
    return Config(s3=style, retries=retries, **options)


def _tries(variables: Mapping[str, str]) -> int | None:
    """Return how often a request is sent, None if the environment does not say."""
    written = variables.get(MOST_TRIES, "")
    return max(int(written), 1) if written.isdecimal() else None


def _patient(client: Any, tries: int | None) -> Any:  # noqa: ANN401 -- as above
    """Let a client repeat its requests, and count that."""
    repeat_requests(client, tries)
    count_waits(client)
    return client


@lru_cache(maxsize=1)
def _models(places: str) -> Any:  # noqa: ANN401 -- as above
    """Return what reads botocore's descriptions of services: to read them takes longer than the rest of a client."""
    from botocore.loaders import create_loader

    return create_loader(places)


def require_reachable(uri: str) -> None:
    """Raise RecipeError or StorageBusy within seconds if `s3://bucket/prefix` cannot be listed from here."""
    from botocore.exceptions import BotoCoreError, ClientError

    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    try:
        client = _new_client(dict(_environment()), QUICK, QUICK_TRIES)
        client.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)
    except (BotoCoreError, ClientError, ValueError) as error:  # ValueError: an endpoint that is no URL
        raise translated(uri, bucket, error) from error
    except RecursionError as error:  # botocore asks for the region, is redirected again, and so on
        message = f"{uri}: the object store redirects every request; correct AWS_ENDPOINT_URL or AWS_REGION"
        raise RecipeError(message) from error


@lru_cache(maxsize=64)
def _require_bucket(environment: tuple[tuple[str, str], ...], bucket: str) -> None:
    from botocore.exceptions import ClientError

    try:
        _client(environment, os.getpid()).head_bucket(Bucket=bucket)
    except ClientError as error:
        if error_code(error) not in ABSENT:
            raise
        message = f"s3://{bucket}: this bucket does not exist; create it or correct the URI"
        raise RecipeError(message) from error


def options_of_other_clients() -> dict[str, str]:
    """Return what a library with an S3 client of its own needs to reach the same server with the same rights.

    The names are those of Rust's `object_store`.
    """
    import boto3

    client, variables = s3_client(), dict(_environment())
    endpoint = variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL") or ""
    options = {"aws_region": str(client.meta.region_name)}
    if endpoint:
        options |= {"aws_endpoint": endpoint, "allow_http": str(endpoint.startswith("http://")).lower()}
    credentials = boto3.session.Session().get_credentials()
    if credentials is not None:
        frozen = credentials.get_frozen_credentials()
        options |= {"aws_access_key_id": frozen.access_key, "aws_secret_access_key": frozen.secret_key}
        options |= {"aws_session_token": frozen.token} if frozen.token else {}
    return options
