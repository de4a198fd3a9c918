"""Takes S3 credentials from the connection `aws_default`, and secrets of sources, stores and pseudonyms from others.

The Amazon provider reads the connection: keys, `profile_name`, `role_arn` with `assume_role_method` and its arguments,
`service_config`. A role becomes a profile of a configuration file, so that boto3 itself renews what expires. A task's
process has others behind it, so what the provider reads is handed on as boto3's environment. A triggerer and a web
server are shared with all of Airflow: there the clients of our URIs get it, and the environment stays as it is.

Where the file of the deployment names connections for a recipe, these decide, and not the environment. Then the clients
of a task get them, too, each its own for root and landing, and hand them on to the processes and workers behind it.
"""

import asyncio
import configparser
import contextlib
import hashlib
import io
import os
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from pipeline_tasks.deployment import OpenStore, Settings, deployment, is_connection, ledger_at
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store import s3_client, temporary
from pipeline_tasks.store.credential import variable_of
from refinery_airflow.runs.places import require_admitted
from refinery_airflow.runs.run import is_here

CONNECTION = "aws_default"
PII_CONNECTION = "refinery_pii"

OWN = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE")
"""Variables by which an environment says who it is; then the connection is not asked."""

S3 = "s3://"

ASKED = 60.0
"""Seconds after which a page asks for the connection again."""

PROFILE, BASE = "refinery", "refinery-base"
"""Names of the profiles of our configuration file: the role, and who takes it."""


def missing(*uris: object) -> bool:
    """Return whether a URI needs S3 credentials that the environment does not have."""
    return any(str(uri).startswith(S3) for uri in uris) and not any(map(os.environ.get, OWN))


def adopt_credentials(*uris: object, recipe: str = "") -> None:
    """Let this process (and the processes that it starts) use the credentials of a recipe for S3 URIs, and its ledger.

    They are those of the connections that the file of the deployment names; without one, of `aws_default`. RecipeError
    for a place that a run of the recipe may not name.
    """
    if not is_here() or not deployment().path:
        require_admitted(*uris, recipe=recipe)
    _adopt_ledgers(*uris, recipe=recipe)
    if missing(*_others(uris, recipe, of_all=True)):
        try:
            os.environ.update(settings_of(Connection.get(CONNECTION)))
        except AirflowNotFoundException:
            return  # an instance profile or a credentials file may do, which boto3 finds by itself


def _others(uris: Iterable[object], recipe: str, *, of_all: bool) -> list[str]:
    """Give the clients of S3 URIs what the file names for a recipe; return the URIs for which it names nothing.

    `of_all` says that the process works for the recipe alone: then the root's connection serves all that is in S3.
    """
    accesses, others = _accesses(uris, recipe)
    if of_all and recipe and accesses and (of_root := deployment().of(recipe).connections.root):
        accesses[s3_client.ALL] = of_root
    known = {name: settings_of(_named(name)) for name in {each for each in accesses.values() if isinstance(each, str)}}
    for place, access in accesses.items():
        s3_client.give(place, access.variables() if isinstance(access, OpenStore) else known[access])
    return others


def _accesses(uris: Iterable[object], recipe: str) -> tuple[dict[str, str | OpenStore], list[str]]:
    """Return what the file names for the places that S3 URIs are below, and the URIs for which it names nothing."""
    accesses, others = dict[str, str | OpenStore](), list[str]()
    for uri in filter(is_s3, map(str, uris)):
        place, access = _access(uri, recipe)
        if access:
            accesses[place] = access
        else:
            others.append(uri)
    return accesses, others


def is_s3(uri: str) -> bool:
    """Return whether a URI is of S3."""
    return uri.startswith(S3)


def _access(uri: str, recipe: str) -> tuple[str, str | OpenStore]:
    """Return the place that a URI is below, and what the file names for it, "" for what serves all recipes."""
    settings = _settings(uri, recipe)
    places = [place for place in settings.admitted if f"{uri}/".startswith(f"{place.rstrip('/')}/")]
    return max(places, key=len, default=uri), settings.access_to(uri)


def _settings(uri: str, recipe: str) -> Settings:
    """Return the settings of a recipe; for a task of no recipe those of the place that it works at."""
    known = deployment()
    return known.of(recipe) if recipe else known.at(uri)


def _named(name: str) -> Any:  # noqa: ANN401 -- an Airflow Connection
    try:
        return Connection.get(name)
    except AirflowNotFoundException as error:
        raise not_set(name) from error


def not_set(name: str) -> RecipeError:
    """Return the error of a connection that the deployment's file names, and Airflow does not have."""
    return RecipeError(f"the connection {name} is not set, and {deployment().path} names it; set it in Airflow")


def _adopt_ledgers(*uris: object, recipe: str) -> None:
    """Let this process, and those that it starts, open the ledgers of roots that are named by a connection."""
    known = deployment()
    names = {known.of(recipe).ledger} if recipe else {ledger_at(str(uri)) for uri in uris}
    for name in filter(is_connection, names):
        _named(name)
        adopt_connection(name)


def give_ledger_to_pages(root: str) -> None:
    """Let pages of the web server open the ledger of a root, and leave the environment as it is."""
    if is_connection(name := ledger_at(root)):
        from pipeline_tasks.publish import ledger

        ledger.give(root, _named(name).get_uri())


def adopt_connection(name: str) -> None:
    """Let this process find a connection that is named, where the environment does not have it; "" needs none."""
    if name and (variable := variable_of(name)) not in os.environ:
        with contextlib.suppress(AirflowNotFoundException):  # who needs it says what is not set
            os.environ[variable] = Connection.get(name).get_uri()


def adopt_secret(variable: str) -> None:
    """Let this process use the connection's password as the secret that `variable` holds; "" needs none."""
    if variable and not os.environ.get(variable):
        try:
            password = Connection.get(PII_CONNECTION).password
        except AirflowNotFoundException:
            return  # the plan refuses the request, and says what to set
        if password:
            os.environ[variable] = str(password)


async def give_credentials_in_triggerer(*uris: object, recipe: str = "") -> None:
    """Let clients of S3 URIs use the credentials of a recipe's connections, and nothing else of a triggerer."""
    accesses, others = _accesses(uris, recipe)
    for place, access in accesses.items():
        s3_client.give(place, access.variables() if isinstance(access, OpenStore) else await _variables_of(access))
    if missing(*others):
        with contextlib.suppress(AirflowNotFoundException):
            _give(await asyncio.to_thread(settings_of, await Connection.async_get(CONNECTION)), others)


async def _variables_of(name: str) -> dict[str, str]:
    try:
        return await asyncio.to_thread(settings_of, await Connection.async_get(name))
    except AirflowNotFoundException as error:
        raise not_set(name) from error


def give_credentials_to_pages(*uris: object, recipe: str = "") -> None:
    """As `give_credentials_in_triggerer`, for pages of the web server: they ask for a connection once a minute."""
    if deployment().path or missing(*uris):
        _ask(uris, recipe, int(time.monotonic() // ASKED))


@lru_cache(maxsize=64)
def _ask(uris: tuple[object, ...], recipe: str, minute: int) -> None:  # noqa: ARG001 -- once a minute
    others = _others(uris, recipe, of_all=False)
    if missing(*others):
        with contextlib.suppress(AirflowNotFoundException):
            _give(settings_of(Connection.get(CONNECTION)), others)


def _give(settings: Mapping[str, str], uris: Iterable[object]) -> None:
    for uri in map(str, uris):
        if uri.startswith(S3):
            s3_client.give(S3 + uri.removeprefix(S3).partition("/")[0], settings)


def settings_of(connection: Any) -> dict[str, str]:  # noqa: ANN401 -- an Airflow Connection
    """Return the variables by which boto3 is what a connection says."""
    from airflow.providers.amazon.aws.utils.connection_wrapper import AwsConnectionWrapper

    aws = AwsConnectionWrapper(conn=connection)
    if aws.role_arn:
        who = _role(aws)
    elif aws.profile_name:
        who = {"AWS_PROFILE": aws.profile_name}
    else:
        who = _keys(aws.aws_access_key_id, aws.aws_secret_access_key, aws.aws_session_token)
    endpoint = "AWS_ENDPOINT_URL_S3" if aws.role_arn else "AWS_ENDPOINT_URL"  # roles are taken at AWS's own STS
    where = {
        "AWS_REGION": aws.region_name,
        endpoint: aws.endpoint_url,
        "AWS_ENDPOINT_URL_STS": _sts(aws),
    }
    if own := aws.get_service_config("s3").get("endpoint_url"):
        where["AWS_ENDPOINT_URL_S3"] = own
    return who | {name: str(value) for name, value in where.items() if value}


def _sts(aws: Any) -> str | None:  # noqa: ANN401 -- an AwsConnectionWrapper
    """Return where roles are taken, None for AWS's own place."""
    url = aws.get_service_config("sts").get("endpoint_url")
    return str(url) if url else None


def _keys(key: str | None, secret: str | None, token: str | None) -> dict[str, str]:
    if not key:
        return {}
    variables = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret or ""}
    return variables | ({"AWS_SESSION_TOKEN": token} if token else {})


def _role(aws: Any) -> dict[str, str]:  # noqa: ANN401 -- an AwsConnectionWrapper
    """Return what lets boto3 take a role, and take it again when it expires."""
    extra = aws.extra_config
    given = aws.assume_role_kwargs
    role = {
        "role_arn": aws.role_arn,
        "region": aws.region_name,
        "role_session_name": given.get("RoleSessionName"),
        "external_id": given.get("ExternalId"),
        "duration_seconds": given.get("DurationSeconds"),
    }
    sections = {f"profile {PROFILE}": role}
    if sts := _sts(aws):
        role["services"] = PROFILE
        sections[f"services {PROFILE}"] = {"sts": f"\nendpoint_url = {sts}"}
    federation = extra.get("assume_role_with_web_identity_federation")
    if aws.assume_role_method == "assume_role_with_web_identity" and federation == "file":
        role["web_identity_token_file"] = extra.get("assume_role_with_web_identity_token_file")
    elif aws.assume_role_method != "assume_role":
        return _taken_now(aws)
    elif aws.aws_access_key_id:
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        sections[f"profile {BASE}"] = {name: getattr(aws, name) for name in names}
        role["source_profile"] = BASE
    elif aws.profile_name:
        role["source_profile"] = aws.profile_name
    else:
        in_container = os.environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        role["credential_source"] = "EcsContainer" if in_container else "Ec2InstanceMetadata"
    return {"AWS_CONFIG_FILE": str(_config_file(sections)), "AWS_PROFILE": PROFILE}


def _taken_now(aws: Any) -> dict[str, str]:  # noqa: ANN401 -- an AwsConnectionWrapper
    """Return the keys of a role that only the provider can take (SAML, Google); they expire."""
    from airflow.providers.amazon.aws.hooks.base_aws import AwsGenericHook

    keys = AwsGenericHook(aws_conn_id=aws.conn_id, client_type="s3").get_credentials()
    return _keys(keys.access_key, keys.secret_key, keys.token)


def _config_file(sections: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write sections, after those that the user has, to a file that only this user reads; return its path."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(os.path.expanduser(os.environ.get("AWS_CONFIG_FILE", "~/.aws/config")))  # noqa: PTH111 -- as boto3 does
    for name in (f"profile {PROFILE}", f"profile {BASE}", f"services {PROFILE}"):  # the file may be one of ours
        config.remove_section(name)
    for name, values in sections.items():
        config[name] = {key: str(value) for key, value in values.items() if value}
    text = io.StringIO()
    config.write(text)
    body = text.getvalue().encode()
    path = temporary.user_folder() / f"aws-{hashlib.sha256(body).hexdigest()[:16]}.config"
    if not path.exists():
        draft = path.with_suffix(f".{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            stream.write(body)
        draft.replace(path)
    return path
