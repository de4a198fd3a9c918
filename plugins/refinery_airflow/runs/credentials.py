"""Takes credentials of buckets from connections, and secrets of sources, stores and pseudonyms from others.

That of `s3://` is `aws_default`, of `gs://` `google_cloud_default`, and of `az://` `wasb_default` (module `clouds`).

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
from typing import TYPE_CHECKING, Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from pipeline_tasks.constraints import AZURE, BUCKETS, GOOGLE, S3, kind_of
from pipeline_tasks.deployment import OpenStore, Settings, deployment, is_connection, ledger_at, plain
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store import named_store, store_settings, temporary
from pipeline_tasks.store.credential import variable_of
from pipeline_tasks.store.places import give_places
from refinery_airflow.runs.clouds import (
    AZURE_CONNECTION,
    AZURE_OWN,
    GOOGLE_CONNECTION,
    GOOGLE_OWN,
    azure_variables,
    google_variables,
    open_variables,
)
from refinery_airflow.runs.places import require_admitted
from refinery_airflow.runs.run import is_here

if TYPE_CHECKING:
    from airflow.providers.amazon.aws.utils.connection_wrapper import AwsConnectionWrapper

CONNECTION = "aws_default"
PII_CONNECTION = "refinery_pii"

OWN = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE")
"""Variables by which an environment says who it is; then the connection is not asked."""

DEFAULTS: Mapping[str, str] = {S3: CONNECTION, GOOGLE: GOOGLE_CONNECTION, AZURE: AZURE_CONNECTION}
"""The connection of each kind of bucket, where nobody names another."""

ASKED = 60.0
"""Seconds after which a page asks for the connection again."""

PROFILE, BASE = "refinery", "refinery-base"
"""Names of the profiles of our configuration file: the role, and who takes it."""


_OWN: Mapping[str, tuple[str, ...]] = {S3: OWN, GOOGLE: GOOGLE_OWN, AZURE: AZURE_OWN}


def missing(*uris: object) -> dict[str, list[str]]:
    """Return by kind the URIs of buckets for which the environment says not who it is."""
    kinds = {kind: [str(uri) for uri in uris if str(uri).startswith(kind)] for kind in DEFAULTS}
    return {kind: found for kind, found in kinds.items() if found and not any(map(os.environ.get, _OWN[kind]))}


def adopt_credentials(*uris: object, recipe: str = "") -> None:
    """Let this process (and the processes that it starts) use the credentials of a recipe for buckets, and its ledger.

    They are those of the connections that the file of the deployment names; without one, of `aws_default`. RecipeError
    for a place that a run of the recipe may not name.
    """
    if not is_here():  # who has a shell has its keys
        require_admitted(*uris, recipe=recipe)
    _adopt_ledgers(*uris, recipe=recipe)
    for kind in missing(*_others(uris, recipe, of_all=True)):
        with contextlib.suppress(AirflowNotFoundException):  # the machine's own identity may do, or a credentials file
            os.environ.update(variables_of(kind, Connection.get(DEFAULTS[kind])))


def _adopt_places(uris: Iterable[object], recipe: str) -> None:
    """Let lists of the landings of a recipe point to its places, and to no place of another recipe."""
    if deployment().path:
        settings = _settings(next(map(str, filter(None, uris)), ""), recipe)
        places = [place for place in settings.admitted if plain(place) != plain(settings.its_root)]
        for place in places:
            give_places(places, plain(place))


def _others(uris: Iterable[object], recipe: str, *, of_all: bool) -> list[str]:
    """Give the clients of buckets what the file names for a recipe; return the URIs for which it names nothing.

    `of_all` says that the process works for the recipe alone: then the root's connection serves all of its kind.
    """
    accesses, others = _accesses(uris, recipe)
    if of_all and recipe and accesses and (of_root := deployment().of(recipe).connections.root):
        root = deployment().of(recipe).its_root
        accesses[kind_of(root) if root.startswith(BUCKETS) else store_settings.ALL] = of_root
    for place, access in accesses.items():
        store_settings.give(place, _said(place, access if isinstance(access, OpenStore) else _named(access)))
    return others


def _said(place: str, access: OpenStore | Connection) -> dict[str, str]:
    """Return the variables by which the client of a place is what the file of the deployment says."""
    kind = kind_of(place)
    if not isinstance(access, OpenStore):
        return variables_of(kind, access)
    return access.variables() if kind == S3 else open_variables(kind, access.endpoint)


def variables_of(kind: str, connection: Connection) -> dict[str, str]:
    """Return the variables by which a client of a kind of bucket is what a connection says."""
    if kind == S3:
        return settings_of(connection)
    return google_variables(connection) if kind == GOOGLE else azure_variables(connection)


def _accesses(uris: Iterable[object], recipe: str) -> tuple[dict[str, str | OpenStore], list[str]]:
    """Return what the file names for the places that URIs are below, and the URIs for which it names nothing.

    Lists of landings point to places of the recipe alone from then on: each process that reads one comes through here.
    """
    uris = [*uris]
    _adopt_places(uris, recipe)
    accesses, others = dict[str, str | OpenStore](), list[str]()
    for uri in (str(uri) for uri in uris if str(uri).startswith(BUCKETS)):  # a brought store has its own way
        place, access = _access(uri, recipe)
        if access:
            accesses[place] = access
        else:
            others.append(uri)
    return accesses, others


def _access(uri: str, recipe: str) -> tuple[str, str | OpenStore]:
    """Return the place that a URI is below, and what the file names for it, "" for what serves all recipes."""
    settings = _settings(uri, recipe)
    places = [place for place in settings.admitted if f"{uri}/".startswith(f"{place.rstrip('/')}/")]
    return max(places, key=len, default=uri), settings.access_to(uri)


def _settings(uri: str, recipe: str) -> Settings:
    """Return the settings of a recipe; for a task of no recipe those of the place that it works at."""
    known = deployment()
    return known.of(recipe) if recipe else known.at(uri)


def _named(name: str) -> Connection:
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
        from pipeline_tasks import ledger

        ledger.give(root, _named(name).get_uri())


def adopt_connection(name: str) -> None:
    """Let this process find a connection that is named, where the environment does not have it; "" needs none."""
    if name and (variable := variable_of(name)) not in os.environ:
        with contextlib.suppress(AirflowNotFoundException):  # who needs it says what is not set
            os.environ[variable] = Connection.get(name).get_uri()


def adopt_store(name: str) -> None:
    """Let this process reach a store by the connection that is the store's, unless a variable says what it is.

    The id of the connection follows from the name of the store, so that nobody names another one by it.
    """
    if name and named_store.variable_of(name) not in os.environ:
        with contextlib.suppress(AirflowNotFoundException):  # who needs it says what is not set
            connection = Connection.get(f"{named_store.CONNECTION}{name}")
            store_settings.give(f"{named_store.OF_STORES}{name}", settings_of(connection))


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
    """Let clients of buckets use the credentials of a recipe's connections, and nothing else of a triggerer."""
    accesses, others = _accesses(uris, recipe)
    for place, access in accesses.items():
        said = access if isinstance(access, OpenStore) else await _named_in_triggerer(access)
        store_settings.give(place, await asyncio.to_thread(_said, place, said))
    for kind, found in missing(*others).items():
        with contextlib.suppress(AirflowNotFoundException):
            connection = await Connection.async_get(DEFAULTS[kind])
            _give(await asyncio.to_thread(variables_of, kind, connection), found)


async def _named_in_triggerer(name: str) -> Connection:
    try:
        return await Connection.async_get(name)
    except AirflowNotFoundException as error:
        raise not_set(name) from error


def give_credentials_to_pages(*uris: object, recipe: str = "") -> None:
    """As `give_credentials_in_triggerer`, for pages of the web server: they ask for a connection once a minute."""
    if deployment().path or missing(*uris):
        _ask(uris, recipe, int(time.monotonic() // ASKED))


@lru_cache(maxsize=64)
def _ask(uris: tuple[object, ...], recipe: str, _minute: int) -> None:
    others = _others(uris, recipe, of_all=False)
    for kind, found in missing(*others).items():
        with contextlib.suppress(AirflowNotFoundException):
            _give(variables_of(kind, Connection.get(DEFAULTS[kind])), found)


def _give(settings: Mapping[str, str], uris: Iterable[object]) -> None:
    for uri in map(str, uris):
        kind = kind_of(uri)
        store_settings.give(kind + uri.removeprefix(kind).partition("/")[0], settings)


def settings_of(connection: Connection) -> dict[str, str]:
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


def _sts(aws: "AwsConnectionWrapper") -> str | None:
    """Return where roles are taken, None for AWS's own place."""
    url = aws.get_service_config("sts").get("endpoint_url")
    return str(url) if url else None


def _keys(key: str | None, secret: str | None, token: str | None) -> dict[str, str]:
    if not key:
        return {}
    variables = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret or ""}
    return variables | ({"AWS_SESSION_TOKEN": token} if token else {})


def _role(aws: "AwsConnectionWrapper") -> dict[str, str]:
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


def _taken_now(aws: "AwsConnectionWrapper") -> dict[str, str]:
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
    draft = path.with_suffix(f".{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        stream.write(body)
    draft.replace(path)  # also over one that is there: only what was written now is known to be whole
    return path
