"""Prepares an object store: buckets, a user that may only read and write them, and a commit that is tried as that user.

`python -m pipeline_tasks.upkeep.bucket` is the service `bucket` of the compose file. `S3_ROOT_ACCESS_KEY` and
`S3_ROOT_SECRET_KEY` are the store's own; `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` are the user's. Where they are
equal (S3 itself, or a user that somebody else made), no user is made.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline_tasks.errors import ContractError, RecipeError, RefineryError, StorageBusy
from pipeline_tasks.store.storage import connect

WAIT = 60
"""Seconds that the store may take until it answers."""

POLICY = "refinery"

OURS_ALREADY = ("BucketAlreadyOwnedByYou", "BucketAlreadyExists")


def policy(buckets: Sequence[str]) -> dict[str, Any]:
    """Return the policy of the user: objects of these buckets, and nothing about buckets, users or policies."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket", "s3:GetBucketLocation"],
                "Resource": [f"arn:aws:s3:::{bucket}" for bucket in buckets],
            },
            {
                "Effect": "Allow",
                "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
                "Resource": [f"arn:aws:s3:::{bucket}/*" for bucket in buckets],
            },
        ],
    }


def prepare(environment: Mapping[str, str]) -> None:
    """Make the buckets that landing and root lie in and their user; raise unless a commit is safe."""
    roots = [environment["REFINERY_LANDING"], environment["REFINERY_ROOT"]]
    buckets = sorted({root.removeprefix("s3://").partition("/")[0] for root in roots})
    keys = environment["S3_ROOT_ACCESS_KEY"], environment["S3_ROOT_SECRET_KEY"]
    for bucket in buckets:
        _make_bucket(bucket, keys)
    if keys[0] != environment["AWS_ACCESS_KEY_ID"]:
        _make_user(environment, keys, buckets)
    _try_commit(roots[1])


def _make_bucket(bucket: str, keys: tuple[str, str]) -> None:
    """Make a bucket unless it exists, as soon as the store answers."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    config = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1})
    client = boto3.client("s3", config=config, aws_access_key_id=keys[0], aws_secret_access_key=keys[1])
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


def _make_user(environment: Mapping[str, str], keys: tuple[str, str], buckets: Sequence[str]) -> None:
    """Make the user and its policy by RustFS's admin API. A repeat replaces what is there."""
    user, secret = environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]
    for path, body in (
        (f"add-canned-policy?name={POLICY}", json.dumps(policy(buckets))),
        (f"add-user?accessKey={user}", json.dumps({"secretKey": secret, "status": "enabled"})),
        (f"set-user-or-group-policy?policyName={POLICY}&userOrGroup={user}&isGroup=false", ""),
    ):
        _put_signed(f"{environment['AWS_ENDPOINT_URL']}/rustfs/admin/v3/{path}", body.encode(), keys)


def _put_signed(url: str, body: bytes, keys: tuple[str, str]) -> None:
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
            "yourself, and set S3_ROOT_ACCESS_KEY and S3_ROOT_SECRET_KEY to its keys, too"
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


if __name__ == "__main__":
    try:
        prepare(os.environ)
    except RefineryError as error:
        sys.exit(f"bucket: {error}")
