"""Prepares an object store: buckets, a user for each zone of trust, and what each of them may do is tried as that user.

`python -m pipeline_tasks.upkeep.bucket` is the service `bucket` of the compose file. `S3_ROOT_ACCESS_KEY` and
`S3_ROOT_SECRET_KEY` are the store's own. `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` are those of Airflow's zone;
`SPARK_S3_ACCESS_KEY` and `RAY_S3_ACCESS_KEY`, with their secrets, are those of the engines' zones. No user is made
where the store's own and Airflow's are equal: on S3 itself, or with users that somebody else made. What an engine's
user may not do is tried in every case.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipeline_tasks.errors import ContractError, RecipeError, RefineryError, StorageBusy
from pipeline_tasks.store.storage import connect
from pipeline_tasks.upkeep.zone_users import LOGS, Keys, User, buckets_of, place_of, users_of

if TYPE_CHECKING:
    from botocore.client import BaseClient

WAIT = 60
"""Seconds that the store may take until it answers."""

DENIED = ("AccessDenied", "403")

OURS_ALREADY = ("BucketAlreadyOwnedByYou", "BucketAlreadyExists")


def prepare(environment: Mapping[str, str]) -> None:
    """Make the buckets that landing and root lie in and the users; raise unless a commit is safe.

    ContractError, too, for an engine with keys of its own that may write a log, a verdict or the landing.
    """
    landing, root = environment["REFINERY_LANDING"], environment["REFINERY_ROOT"]
    keys = Keys(environment["S3_ROOT_ACCESS_KEY"], environment["S3_ROOT_SECRET_KEY"])
    for bucket in buckets_of(landing, root):
        _make_bucket(bucket, keys)
    own, *engines = users_of(environment)
    if keys.access != own.keys.access:
        for user in (own, *(each for each in engines if each.keys != own.keys)):
            _make_user(user, keys, environment["AWS_ENDPOINT_URL"])
    _try_commit(root)
    for user in engines:
        if user.keys == own.keys:
            sys.stdout.write(
                f"bucket: {user.zone} has the keys of airflow, so a kernel may write all that Airflow may\n"
            )
        else:
            _try_refusals(user, landing, root)


def _client(keys: Keys) -> "BaseClient":
    import boto3
    from botocore.config import Config

    config = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1})
    return boto3.client("s3", config=config, aws_access_key_id=keys.access, aws_secret_access_key=keys.secret)


def _make_bucket(bucket: str, keys: Keys) -> None:
    """Make a bucket unless it exists, as soon as the store answers."""
    from botocore.exceptions import BotoCoreError, ClientError

    client = _client(keys)
    for left in range(WAIT, -1, -1):
        try:
            client.create_bucket(Bucket=bucket)
        except (BotoCoreError, ClientError) as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"] in OURS_ALREADY:
                return
            if not left:
                message = f"no bucket {bucket}: {error}"
                raise StorageBusy(message) from error
            time.sleep(1)
        else:
            return


def _make_user(user: User, keys: Keys, endpoint: str) -> None:
    """Make a user and its policy by RustFS's admin API. A repeat replaces what is there."""
    name = f"refinery-{user.zone}"
    for path, body in (
        (f"add-canned-policy?name={name}", json.dumps(user.policy)),
        (f"add-user?accessKey={user.keys.access}", json.dumps({"secretKey": user.keys.secret, "status": "enabled"})),
        (f"set-user-or-group-policy?policyName={name}&userOrGroup={user.keys.access}&isGroup=false", ""),
    ):
        _put_signed(f"{endpoint}/rustfs/admin/v3/{path}", body.encode(), keys)


def _put_signed(url: str, body: bytes, keys: Keys) -> None:
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    signed = AWSRequest(method="PUT", url=url, data=body, headers={"Content-Type": "application/json"})
    S3SigV4Auth(Credentials(*keys), "s3", os.environ.get("AWS_REGION", "us-east-1")).add_auth(signed)
    request = urllib.request.Request(url, body, dict(signed.headers), method="PUT")  # noqa: S310 -- the configured store
    try:
        with urllib.request.urlopen(request, timeout=30):  # noqa: S310 -- as above
            return
    except urllib.error.HTTPError as error:
        path = url.partition("?")[0]
        message = (
            f"{path} answered {error.code}: this store does not make users by RustFS's admin API. Make the user "
            "and those of the engines yourself, and set S3_ROOT_ACCESS_KEY and S3_ROOT_SECRET_KEY to its keys, too"
        )
        raise RecipeError(message) from error
    except OSError as error:
        message = f"{url.partition('?')[0]} did not answer ({error})"
        raise StorageBusy(message) from error


def _try_commit(root: str) -> None:
    """Raise ContractError unless a second PUT to the same name is refused; the names are removed afterwards."""
    store, name = connect(root), f"doctor/{uuid.uuid4().hex}"
    created = [store.create(name, body) for body in (b"first", b"second")]
    store.delete(name)
    if created != [True, False]:
        message = "this object store ignores If-None-Match: choose another, or Refinery's commits are not safe"
        raise ContractError(message)


def _try_refusals(user: User, landing: str, root: str) -> None:
    """Raise ContractError if an engine's user may write a log or the landing: each is tried, and removed again."""
    from botocore.exceptions import ClientError

    client, tried = _client(user.keys), f"doctor-{uuid.uuid4().hex}"
    for uri in (landing, *(f"{root.rstrip('/')}/{folder}" for folder in (*LOGS, "extract/0/gate"))):
        bucket, prefix = place_of(uri)
        try:
            client.put_object(Bucket=bucket, Key=prefix + tried, Body=b"")
        except ClientError as error:
            if error.response["Error"]["Code"] not in DENIED:
                raise
        else:
            connect(uri).delete(tried)
            message = (
                f"the user {user.keys.access} of {user.zone} may write below {uri}, so what a kernel "
                "changes could not be found. Give it the policy that docs/security.md has, or no keys of its own"
            )
            raise ContractError(message)


if __name__ == "__main__":
    try:
        prepare(os.environ)
    except RefineryError as error:
        sys.exit(f"bucket: {error}")
