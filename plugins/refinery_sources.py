"""Pulls a snapshot from a source below the landing, by the params of a run."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Param
from refinery_credentials import adopt_credentials
from refinery_form import ADVANCED, TEXT

log = logging.getLogger("refinery")

FILES = 10
"""Files of a run whose form nobody has filled in: a whole crawl has 90,000."""


def params_of_pull(landing: str) -> dict[str, Param]:
    """Return the params of a pull of Common Crawl, as the form shows them."""
    return {
        "crawl": Param("latest", title="Crawl", description="An id, as CC-MAIN-2026-45, or latest", **TEXT),
        "kind": Param("warc", enum=["warc", "wet"], title="Kind", description="Pages, or extracted texts", **TEXT),
        "segments": Param("", title="Segments", description="By number, as 0-3 or 0,5,7-9; empty: all", **TEXT),
        "files": Param(FILES, type="integer", minimum=0, title="Files", description="This many of them; 0: all"),
        "sample": Param(1.0, type="number", maximum=1, title="Share", description="A share of the files"),
        "landing": Param(landing, section=ADVANCED, description="Where the folder of the crawl is made", **TEXT),
        "seed": Param(0, type="integer", section=ADVANCED, description="Which files a number or a share takes"),
        "address": Param(
            "https://data.commoncrawl.org", section=ADVANCED, description="Common Crawl, or a mirror", **TEXT
        ),
        "rate": Param(2.0, type="number", minimum=0.01, section=ADVANCED, description="Requests per second"),
        "workers": Param(4, type="integer", minimum=1, maximum=32, section=ADVANCED, description="Files at once"),
    }


def pull_crawl(params: Mapping[str, Any]) -> dict[str, Any]:
    """Pull what the params of a run ask for; return where it has landed, and its amounts."""
    from pipeline_tasks.embedded.airflow_home import state_folder
    from pipeline_tasks.sources.budget import Rate
    from pipeline_tasks.sources.common_crawl import CommonCrawl
    from pipeline_tasks.sources.pull import Pull, landing_at, pull
    from pipeline_tasks.sources.source import Occasion
    from pipeline_tasks.sources.web import web

    names = ("crawl", "kind", "segments", "sample", "files", "seed")
    query = CommonCrawl(**{name: params[name] for name in names}, address=params["address"].rstrip("/"))
    adopt_credentials(params["landing"])
    with web(Rate(params["rate"]), params["workers"]) as on:
        source = query.resolved(Occasion(on, "", datetime.now(UTC)))
        place = f"{params['landing'].rstrip('/')}/{source.crawl}"
        landed = pull(source, landing_at(place, state_folder() / "pulls"), Pull(on, params["workers"]))
    log.info("%s has landed whole in %s: %d files, %d bytes", landed.snapshot, place, landed.files, landed.bytes)
    return {"snapshot": landed.snapshot, "input": place, "files": landed.files, "bytes": landed.bytes}
