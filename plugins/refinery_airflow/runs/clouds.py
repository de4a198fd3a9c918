"""Takes credentials for `gs://` and `az://` from Airflow's connections, by the fields that their providers document.

No provider is imported: what a connection says becomes variables by obstore's names, secrets included, so that workers
without its files can use them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pipeline_tasks.constraints import GOOGLE
from pipeline_tasks.errors import RecipeError

if TYPE_CHECKING:
    from airflow.sdk import Connection

GOOGLE_CONNECTION, AZURE_CONNECTION = "google_cloud_default", "wasb_default"

GOOGLE_OWN = ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY")
AZURE_OWN = ("AZURE_STORAGE_ACCOUNT_NAME",)
"""Variables by which an environment says who it is; then the connection is not asked."""

_OF_GOOGLE = "extra__google_cloud_platform__"
_OF_AZURE = "extra__wasb__"
_UNREAD = ("key_secret_name", "credential_config_file", "impersonation_chain")
"""Ways to become somebody on Google's side that the client has not."""


def google_variables(connection: "Connection") -> dict[str, str]:
    """Return what a connection of type `google_cloud_platform` says: a key, nobody, or nothing, the machine's own.

    RecipeError for a way to be somebody that the client has not: it would be somebody else.
    """
    extra = _extra(connection, _OF_GOOGLE)
    if unread := next((name for name in _UNREAD if extra.get(name)), None):
        message = (
            f"the connection {connection.conn_id} has {unread}, which the client of gs:// does not follow; give it "
            "keyfile_dict or key_path, or leave both out where the machine itself has an identity"
        )
        raise RecipeError(message)
    if extra.get("is_anonymous"):
        return {"GOOGLE_SKIP_SIGNATURE": "true"}
    key = extra.get("keyfile_dict") or (_file(connection, extra["key_path"]) if extra.get("key_path") else "")
    if not key:
        return {}
    try:
        fields = json.loads(key) if isinstance(key, str) else key
        kind = fields.get("type", "service_account")
    except (ValueError, AttributeError) as error:  # without its text, which may have the key
        message = f"the connection {connection.conn_id}: its key is no JSON of a service account; correct it"
        raise RecipeError(message) from error
    if kind != "service_account":
        message = (
            f"the connection {connection.conn_id} has credentials of type {str(kind)[:50]!r}, and the client of gs:// "
            "takes the key of a service account; or leave it out where the machine itself has an identity"
        )
        raise RecipeError(message)
    return {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(fields)}


def azure_variables(connection: "Connection") -> dict[str, str]:
    """Return what a connection of type `wasb` says: the account, and a key, a SAS token, or a client and its secret.

    Without one of these requests are those of the machine's managed identity.
    """
    extra = _extra(connection, _OF_AZURE)
    if extra.get("connection_string"):
        return _of_string(connection, str(extra["connection_string"]))
    host, login, secret = (str(value or "") for value in (connection.host, connection.login, connection.password))
    url = host if "://" in host else ""
    account = _account(url or host) or login
    known = {"AZURE_STORAGE_ACCOUNT_NAME": account, "AZURE_STORAGE_ENDPOINT": url}
    if extra.get("tenant_id") and secret:
        known |= {"AZURE_TENANT_ID": str(extra["tenant_id"]), "AZURE_CLIENT_ID": login, "AZURE_CLIENT_SECRET": secret}
    elif extra.get("sas_token"):
        known["AZURE_STORAGE_SAS_KEY"] = str(extra["sas_token"]).removeprefix("?")
    elif key := extra.get("shared_access_key") or secret:
        known["AZURE_STORAGE_ACCOUNT_KEY"] = str(key)
    elif extra.get("managed_identity_client_id"):
        known["AZURE_CLIENT_ID"] = str(extra["managed_identity_client_id"])
    if not account:
        message = f"the connection {connection.conn_id} names no account; set its login or host to it"
        raise RecipeError(message)
    return {name: value for name, value in known.items() if value}


def open_variables(kind: str, endpoint: str) -> dict[str, str]:
    """Return the variables of requests that are nobody's, to a server; RecipeError for one of Azure without account."""
    if kind == GOOGLE:
        return {"GOOGLE_SKIP_SIGNATURE": "true"} | ({"GOOGLE_BASE_URL": endpoint} if endpoint else {})
    if not endpoint:
        message = "an anonymous place at az:// needs `endpoint`, as https://ACCOUNT.blob.core.windows.net"
        raise RecipeError(message)
    return {
        "AZURE_SKIP_SIGNATURE": "true",
        "AZURE_STORAGE_ENDPOINT": endpoint.rstrip("/"),
        "AZURE_STORAGE_ACCOUNT_NAME": _account(endpoint),
    }


def _account(host: str) -> str:
    """Return the account of an address: the first part of a name, or of the path behind a server of one's own."""
    parts = urlsplit(host if "://" in host else f"//{host}")
    name = parts.hostname or ""
    if name.replace(".", "").isdigit() or name == "localhost":
        return parts.path.strip("/")
    return name.partition(".")[0]


def _of_string(connection: "Connection", text: str) -> dict[str, str]:
    fields = dict(part.split("=", 1) for part in text.split(";") if "=" in part)
    account = fields.get("AccountName", "")
    if not account:
        message = f"the connection {connection.conn_id}: its connection_string has no AccountName; correct it"
        raise RecipeError(message)
    suffix, protocol = fields.get("EndpointSuffix", ""), fields.get("DefaultEndpointsProtocol", "https")
    known = {
        "AZURE_STORAGE_ACCOUNT_NAME": account,
        "AZURE_STORAGE_ACCOUNT_KEY": fields.get("AccountKey", ""),
        "AZURE_STORAGE_SAS_KEY": fields.get("SharedAccessSignature", ""),
        "AZURE_STORAGE_ENDPOINT": fields.get("BlobEndpoint", f"{protocol}://{account}.blob.{suffix}" if suffix else ""),
    }
    return {name: value.rstrip("/") if name.endswith("ENDPOINT") else value for name, value in known.items() if value}


def _extra(connection: "Connection", prefix: str) -> Mapping[str, Any]:
    """Return the extra fields of a connection; older ones have the prefix of their form."""
    return {name.removeprefix(prefix): value for name, value in connection.extra_dejson.items()}


def _file(connection: "Connection", path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        message = f"the connection {connection.conn_id}: key_path {path} cannot be read here; correct it"
        raise RecipeError(message) from error
