"""Users of the object store, one for each zone of trust, and what each of them may do as a policy of IAM.

`python -m pipeline_tasks.upkeep.zone_users LANDING ROOT` prints the policies, for who makes the users of a store.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pipeline_tasks.constraints import S3, bucket_and_prefix
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.logs import ablation_log, model_log
from pipeline_tasks.recipe import engine_names
from pipeline_tasks.store import access_log, erasures

LOGS = (
    "datasets",
    ablation_log.FOLDER,
    model_log.MODELS,
    erasures.TAKEDOWNS.folder,
    erasures.FOLDER,
    access_log.FOLDER,
    "publish",
    "readings",
    "intruders",
    "land",
    "compose",
    "compacted",
    "maps",
    "vectors",
    "alerts",
)
"""Folders of a root that no stage writes: what they have says which bytes of all others are the right ones, what people
have said of them, or is read in their place."""

VERDICTS = "*/gate"
"""The folders of verdicts, beside the manifests that they judge: no engine judges."""

READ = ["s3:GetObject", "s3:ListMultipartUploadParts"]
WRITE = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]


class Keys(NamedTuple):
    """The keys of a user of the object store."""

    access: str
    secret: str


@dataclass(frozen=True, slots=True)
class User:
    """A user of the object store: the zone that has its keys, and what it may do, as a policy."""

    zone: str
    keys: Keys
    policy: dict[str, Any]


def policy(landing: str, root: str) -> dict[str, Any]:
    """Return the policy of Airflow's zone: objects of these buckets, and nothing about buckets, users or policies."""
    return _policy(_allow([*READ, *WRITE], _resources(landing, root)), landing, root)


def engine_policy(landing: str, root: str) -> dict[str, Any]:
    """Return the policy of an engine's zone: it reads both buckets, and writes below the root what stages write.

    It writes no log and no verdict: what a kernel that runs code of others changes elsewhere, `verify` finds by what
    the logs say.
    """
    below = _below(root)
    return _policy(
        _allow(READ, _resources(landing, root)),
        landing,
        root,
        _allow(WRITE, [f"{below}*"]),
        {"Effect": "Deny", "Action": WRITE, "Resource": [f"{below}{folder}/*" for folder in (*LOGS, VERDICTS)]},
    )


def _policy(objects: dict[str, Any], landing: str, root: str, *more: dict[str, Any]) -> dict[str, Any]:
    listed = _allow(
        ["s3:ListBucket", "s3:ListBucketMultipartUploads", "s3:GetBucketLocation"],
        [f"arn:aws:s3:::{bucket}" for bucket in buckets_of(landing, root)],
    )
    return {"Version": "2012-10-17", "Statement": [listed, objects, *more]}


def _allow(actions: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": list(resources)}


def _resources(landing: str, root: str) -> list[str]:
    return [f"arn:aws:s3:::{bucket}/*" for bucket in buckets_of(landing, root)]


def buckets_of(landing: str, root: str) -> list[str]:
    """Return the buckets of a landing and a root."""
    return sorted({place_of(uri)[0] for uri in (landing, root)})


def _below(uri: str) -> str:
    """Return how the resources below a URI begin."""
    bucket, prefix = place_of(uri)
    return f"arn:aws:s3:::{bucket}/{prefix}"


def place_of(uri: str) -> tuple[str, str]:
    """Return the bucket of a URI, and the prefix of its keys; RecipeError for one that is not of S3."""
    if not uri.startswith(S3):
        message = f"{uri}: policies are of users of S3: name s3://BUCKET/PREFIX"
        raise RecipeError(message)
    bucket, prefix = bucket_and_prefix(uri)
    return bucket, f"{prefix.rstrip('/')}/" if prefix.rstrip("/") else ""


def users_of(environment: Mapping[str, str]) -> list[User]:
    """Return the users of the zones; an engine without keys of its own has Airflow's."""
    landing, root = environment["REFINERY_LANDING"], environment["REFINERY_ROOT"]
    own = Keys(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"])
    users = [User("airflow", own, policy(landing, root))]
    for engine in engine_names()[1:]:
        names = (f"{engine.upper()}_S3_ACCESS_KEY", f"{engine.upper()}_S3_SECRET_KEY")
        keys = Keys(*(environment.get(name) or given for name, given in zip(names, own, strict=True)))
        users.append(User(engine, keys, engine_policy(landing, root)))
    return users


def main() -> None:
    """Print the policies of the users of a landing place and a root."""
    parser = argparse.ArgumentParser(prog="python -m pipeline_tasks.upkeep.zone_users", description=__doc__)
    parser.add_argument("landing", metavar="LANDING", help="s3://BUCKET/PREFIX of snapshots")
    parser.add_argument("root", metavar="ROOT", help="s3://BUCKET/PREFIX of what is refined")
    places = parser.parse_args()
    try:
        policies = {
            "airflow": policy(places.landing, places.root),
            "engines": engine_policy(places.landing, places.root),
        }
    except RecipeError as error:
        parser.error(str(error))
    sys.stdout.write(json.dumps(policies, indent=2) + "\n")


if __name__ == "__main__":
    main()
