"""Shows rows that a manifest keeps or rejected, before what a gate refused is approved."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse

from pipeline_tasks.ask.question import Role
from pipeline_tasks.cards import makes_documents, reads_landed
from pipeline_tasks.inspect.evidence import evidence_of
from pipeline_tasks.stage import Shards
from pipeline_tasks.store.reading import is_cleared, read_manifest, read_shards
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import curator, may_see, require
from refinery_airflow.pages.fields import NOT_FOUND
from refinery_airflow.pages.rendering import SAMPLE, show
from refinery_airflow.runs.run import root

router = APIRouter(route_class=LookRoute)

ROWS_SHOWN = 20
"""Rows, rejected or kept, that a page shows."""

SAMPLED = ("url", "language", "text")
"""Columns of kept rows that a page shows, of those that a stage has."""

MOST_SAMPLED = 64_000_000
"""Bytes of shards in which a request looks for rows of a sample; it reads the shard in which it comes to these."""

COMMITTED = re.compile(r"[a-z_]+/[0-9a-f]{24}/manifest\.((partial-[0-9a-f]{12}|\d+)\.)?json")
"""Paths of the manifests whose rows are shown."""


def _sample(shards: Shards, reason: str = "", columns: Sequence[str] | None = None) -> Iterator[Mapping[str, Any]]:
    """Yield the first rows that have `reason` (any, if it is ""), their texts cut short; all columns unless given.

    They are looked for in the first shards, up to `MOST_SAMPLED` bytes of these.
    """
    left = ROWS_SHOWN
    read = accumulate(shard.weight for shard in shards)
    first = [shard for shard, bytes_ in zip(shards, read, strict=True) if bytes_ - shard.weight < MOST_SAMPLED]
    for batch in read_shards(root(), first, columns):
        for row in batch.to_pylist():
            if left and reason in ("", row.get("reason")):
                left -= 1
                yield {**row, "text": str(row.get("text") or "")[:SAMPLE]}
        if not left:
            return


@router.get("/sample/{path:path}", dependencies=[Depends(curator)])
def sample_page(request: Request, path: str, user: GetUserDep, reason: str = "") -> HTMLResponse:
    """Show rows that a manifest keeps, and to stewards those that it rejected, before what a gate refused is approved.

    Texts that came through no stage that clears personal data have it, so that these rows are for stewards, too.
    """
    if not COMMITTED.fullmatch(path):
        raise HTTPException(NOT_FOUND, f"{path} is not the path of a manifest")
    manifest = read_manifest(root(), path)
    if not is_cleared(root(), manifest):
        require(request, user, Role.STEWARD)
    sees_all = may_see(request, user, Role.STEWARD)
    is_landed = reads_landed(manifest.stage) and not makes_documents(manifest.stage)
    unread = {"text"} if is_landed else set[str]()  # it is read from the landed files, by a run alone
    columns = [name for name, _ in manifest.schema if name in SAMPLED and name not in unread]
    kept = list(_sample(manifest.shards, columns=columns)) if columns else []
    rejected = list(_sample(manifest.rejects + manifest.quarantine, reason)) if sees_all else []
    return show(
        "sample.html",
        path=path,
        stage=manifest.stage,
        kept=kept,
        rejected=rejected,
        sees_all=sees_all,
        reasons={**manifest.rejected, **manifest.quarantined},
        reason=reason,
        evidence_of=evidence_of,
        most_bytes=MOST_SAMPLED,
    ).of(len(kept) + len(rejected))
