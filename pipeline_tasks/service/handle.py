"""Handles requests: each verb's work, and the program that a cluster runs.

preflight
         find what would end a run before its first stage
land     list a landed snapshot and commit its manifest
compose  commit the manifest of the versions that a training dataset is built from
history  name the history that earlier snapshots of a recipe saved for this one
spans    cut a stage's input into partitions of about equal bytes: at most n, or as many as its bytes ask for
refine   run a stage over its input, or over one span of it
seal     concatenate a stage's partitions into its manifest
quarantine
         quarantine every row of a partition that failed every try
record   record in the ledger what a stage cost that a driver on a cluster refined
judge    check a manifest by the stage's gate
judge_snapshot
         check a snapshot from what landed to what would be published
judge_recipe
         check that ablations say of a recipe what it requires
publish  make a dataset version of a snapshot's manifests, or of a build's
export   export a version of a training dataset in formats of other trainers
index    bring the store of vectors in line with what is published
compact  merge the history of many snapshots
vacuum   list or remove what no manifest names
retention
         list or apply what a policy says of how long objects are kept
verify   re-check what is published

Extensions bring more verbs (`verbs.SEAM`).
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import cast

from pipeline_tasks.binding import bind_fields
from pipeline_tasks.constraints import OptionalUri
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.run.request import ReplyT, Request
from pipeline_tasks.service.requests.wire import Wire, decode, parse, refusal_of
from pipeline_tasks.service.verbs import verb_of
from pipeline_tasks.store import storage
from pipeline_tasks.store.s3 import waits as s3_waits
from pipeline_tasks.store.s3.waits import Waits

UNLOGGED = {"preflight", "history", "spans", "record"}
"""Verbs whose replies no task logs."""

MOST_URI = 4000
"""Characters of a URI; of a path, Linux takes 4,096 bytes."""


@dataclass(frozen=True, slots=True)
class _ReplyTo:
    """The field of a request file that says where its reply goes."""

    reply: OptionalUri


def handle(request: Request[ReplyT]) -> ReplyT:
    """Do what a request says and return its reply; RefineryError if it cannot be done.

    A reply has `s3_waits` if S3 was too busy: the requests that were sent again, in the workers of a stage and in this
    process since its last reply, and the seconds until then. What requests that no task logs waited is in the next one.
    """
    storage.require_folder(request.root)
    known = verb_of(request.verb)
    assert known is not None
    reply: Wire = known.load_work()(request)
    if request.verb not in UNLOGGED:
        waits = Waits(**reply.pop("s3_waits", {})) + s3_waits.take()
        if waits.requests:
            reply["s3_waits"] = asdict(waits)
    return cast("ReplyT", reply)


def main(arguments: Sequence[str]) -> int:
    """Handle the request in a file or URI, store the reply at its `reply`, and return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m pipeline_tasks request.json\n")
        return RecipeError.exit_code
    reply_to, code = "", 0
    try:
        raw = _read_json(arguments[0])
        reply_to = _reply_uri(raw)
        reply = handle(decode(raw))
    except RefineryError as error:
        reply, code = {**refusal_of(error), "exit": error.exit_code}, error.exit_code
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    except BaseException as error:
        if reply_to:
            _store_reply(
                reply_to, {"error": type(error).__name__, "message": str(error), "exit": RefineryError.exit_code}
            )
        raise
    if reply_to:
        return _store_reply(reply_to, reply) or code
    sys.stdout.write(json.dumps(reply, sort_keys=True) + "\n")
    return code


def _reply_uri(raw: object) -> str:
    """Take the URI of the reply out of a request, "" if it has none."""
    if not isinstance(raw, dict) or "reply" not in raw:
        return ""
    where = raw.pop("reply")
    return bind_fields(_ReplyTo, {"reply": where}, "the request").reply


def _store_reply(uri: str, reply: Wire) -> int:
    """Store a reply; return 0, or the exit code if it cannot be stored."""
    folder, slash, name = uri.rpartition("/")
    try:
        storage.commit(storage.connect(folder or slash or "."), name, json.dumps(reply, sort_keys=True).encode())
    except (RefineryError, OSError) as error:
        code = error.exit_code if isinstance(error, RefineryError) else RecipeError.exit_code
        sys.stderr.write(f"{type(error).__name__}: the reply cannot be stored at {uri} ({error}); correct `reply`\n")
        return code
    return 0


def _read_json(uri: str) -> object:
    if len(uri) > MOST_URI:
        message = f"{uri[:100]}... is too long for a path; give the path or URI of a JSON file"
        raise RecipeError(message)
    folder, slash, name = uri.rpartition("/")
    try:
        body = storage.connect(folder or slash or ".").read(name)
    except FileNotFoundError as error:
        message = f"{uri}: no such request; give the path or URI of a JSON file"
        raise RecipeError(message) from error
    except IsADirectoryError as error:
        message = f"{uri} is a folder; give the path or URI of a JSON file"
        raise RecipeError(message) from error
    except OSError as error:
        message = f"{uri[:200]} cannot be read ({error.strerror or error}); give the path or URI of a JSON file"
        raise RecipeError(message) from error
    return parse(body, uri)
