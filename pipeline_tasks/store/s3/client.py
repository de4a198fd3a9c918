"""Builds boto3's S3 clients for this process's AWS environment, what a URI was given, or a named store."""

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pipeline_tasks.constraints import bucket_and_prefix
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store.named_store import settings_of_store
from pipeline_tasks.store.s3.errors import ABSENT, error_code, repeat_requests, translated
from pipeline_tasks.store.s3.waits import count_waits
from pipeline_tasks.store.store_settings import ALL, OWN, Settings, settings_of

if TYPE_CHECKING:
    from boto3.session import Session
    from botocore.client import BaseClient
    from botocore.loaders import Loader

QUICK, QUICK_TRIES = {"connect_timeout": 5, "read_timeout": 10}, 3
"""Timeouts of the question before a run: a wrong address or credential is found within seconds."""

PATIENT = {"connect_timeout": 10, "read_timeout": 60}
"""Timeouts of requests of a run."""

SERVICE_TRIES = 6
"""How often boto3 sends a request to another service, with pauses that double: half a minute in all."""

MOST_TRIES = "AWS_MAX_ATTEMPTS"
"""The variable of boto3 that says how often a request is sent."""


ANONYMOUS = "AWS_NO_SIGN_REQUEST"
"""Name of the setting with which requests are nobody's: they are not signed."""


def s3_client(store: str = "", uri: str = "") -> "BaseClient":
    """Return the client for objects at a URI, or of a named store, of which this process's environment says nothing."""
    return _client(settings_of_store(store) if store else settings_of(uri), os.getpid())


def require_bucket(uri: str) -> None:
    """Raise RecipeError if the bucket of a URI does not exist."""
    _require_bucket(settings_of(uri), bucket_and_prefix(uri)[0])


def forget_clients() -> None:
    """Let the next request have a client that reads its credentials anew: those of this process's have expired."""
    _client.cache_clear()


@lru_cache(maxsize=8)
def _client(settings: Settings, process: int) -> "BaseClient":
    del process  # a forked process must not answer on the connections of its parent
    return _new_client(settings, PATIENT, _tries(dict(settings.variables)))


def _new_client(settings: Settings, options: Mapping[str, object], tries: int | None) -> "BaseClient":
    """Return a client that repeats its requests, and counts that."""
    from botocore.config import Config

    variables = dict(settings.variables)
    endpoint = variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL")
    session = _session(settings)
    region = variables.get("AWS_REGION") or session.region_name or "us-east-1"
    given: dict[str, Any] = {"ignore_configured_endpoint_urls": True} if settings.are_given else {}
    given |= _unsigned() if is_anonymous(settings) else {}
    style = {} if endpoint is None else {"addressing_style": "path"}
    retries = {"mode": "standard", "total_max_attempts": 1}  # ours are those of `s3_errors`
    config = Config(s3=style, retries=retries, **options, **given)
    where = {"endpoint_url": endpoint} if settings.are_given else {}
    client: BaseClient = session.client("s3", config=config, region_name=region, **where)
    repeat_requests(client, tries)
    count_waits(client)
    return client


def service_client(service: str, uri: str = ALL, region: str = "") -> "BaseClient":
    """Return the client of another service of AWS with the credentials of a URI; boto3 itself repeats its requests.

    An endpoint of a store is none of the service's: `AWS_ENDPOINT_URL_...` with the name of the service is.
    """
    return _service_client(settings_of(uri), service, region, os.getpid())


@lru_cache(maxsize=8)
def _service_client(settings: Settings, service: str, region: str, process: int) -> "BaseClient":
    del process  # as above
    from botocore.config import Config

    variables = dict(settings.variables)
    endpoint = variables.get(f"AWS_ENDPOINT_URL_{service.replace('-', '_').upper()}")
    retries = {"mode": "standard", "total_max_attempts": _tries(variables) or SERVICE_TRIES}
    config = Config(retries=retries, ignore_configured_endpoint_urls=True, **PATIENT)
    session = _session(settings)
    where = region or variables.get("AWS_REGION") or session.region_name
    return session.client(service, config=config, region_name=where, endpoint_url=endpoint)


def is_anonymous(settings: Settings) -> bool:
    """Return whether requests are nobody's: only where that was given, whatever this process's environment says."""
    return settings.are_given and ANONYMOUS in dict(settings.variables)


def _unsigned() -> dict[str, Any]:
    from botocore import UNSIGNED

    return {"signature_version": UNSIGNED}


def _session(settings: Settings = OWN) -> "Session":
    import boto3
    import botocore.session

    core = botocore.session.get_session()
    if settings.are_given:
        variables = dict(settings.variables)
        for option, name in (("config_file", "AWS_CONFIG_FILE"), ("profile", "AWS_PROFILE")):
            if name in variables:
                core.set_config_variable(option, variables[name])
        if key := variables.get("AWS_ACCESS_KEY_ID"):
            core.set_credentials(key, variables.get("AWS_SECRET_ACCESS_KEY"), variables.get("AWS_SESSION_TOKEN"))
    core.register_component("data_loader", _models(core.get_config_variable("data_path") or ""))
    return boto3.session.Session(botocore_session=core)


def _tries(variables: Mapping[str, str]) -> int | None:
    """Return how often a request is sent, None if the environment does not say."""
    written = variables.get(MOST_TRIES, "")
    return max(int(written), 1) if written.isdecimal() else None


@lru_cache(maxsize=1)
def _models(places: str) -> "Loader":
    """Return what reads botocore's descriptions of services: to read them takes longer than the rest of a client."""
    from botocore.loaders import create_loader

    return create_loader(places)


def require_reachable(uri: str) -> None:
    """Raise RecipeError or StorageBusy within seconds if `s3://bucket/prefix` cannot be listed from here."""
    from botocore.exceptions import BotoCoreError, ClientError

    bucket, prefix = bucket_and_prefix(uri)
    try:
        client = _new_client(settings_of(uri), QUICK, QUICK_TRIES)
        client.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)
    except (BotoCoreError, ClientError, ValueError) as error:  # ValueError: an endpoint that is no URL
        raise translated(uri, bucket, error) from error
    except RecursionError as error:  # botocore asks for the region, is redirected again, and so on
        message = f"{uri}: the object store redirects every request; correct AWS_ENDPOINT_URL or AWS_REGION"
        raise RecipeError(message) from error


@lru_cache(maxsize=64)
def _require_bucket(settings: Settings, bucket: str) -> None:
    from botocore.exceptions import ClientError

    try:
        _client(settings, os.getpid()).head_bucket(Bucket=bucket)
    except ClientError as error:
        if error_code(error) not in ABSENT:
            raise
        message = f"s3://{bucket}: this bucket does not exist; create it or correct the URI"
        raise RecipeError(message) from error


def options_of_other_clients(uri: str = "") -> dict[str, str]:
    """Return what a library with an S3 client of its own needs to reach a URI's server with the same rights.

    The names are those of Rust's `object_store`.
    """
    settings = settings_of(uri)
    client, variables = s3_client(uri=uri), dict(settings.variables)
    endpoint = variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL") or ""
    options = {"aws_region": str(client.meta.region_name)}
    if endpoint:
        options |= {"aws_endpoint": endpoint, "allow_http": str(endpoint.startswith("http://")).lower()}
    if is_anonymous(settings):
        return options | {"aws_skip_signature": "true"}
    credentials = _session(settings).get_credentials()
    if credentials is not None:
        frozen = credentials.get_frozen_credentials()
        options |= {"aws_access_key_id": frozen.access_key, "aws_secret_access_key": frozen.secret_key}
        options |= {"aws_session_token": frozen.token} if frozen.token else {}
    return options
