"""Files that say under which rights data is, by their addresses in a recipe: they land beside it, and are no data."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.listing import LISTING_BYTES
from refinery_sources.download import download
from refinery_sources.files.copied import copy_part
from refinery_sources.source import RIGHTS, Flow, Part, Received
from refinery_sources.web import Web, fetched, require_address
from refinery_sources.whole_part import write_whole

LONGEST = 150
"""Characters of a name, which are the last ones of the address."""

_OF_WEB = ("https://", "http://")


def rights_parts(addresses: Sequence[str]) -> list[Part]:
    """Return the files at addresses (of the web, of a bucket, or a path) as parts; RecipeError for two of one name."""
    parts = [Part(_name(address), address) for address in addresses]
    name, times = Counter(part.name for part in parts).most_common(1)[0] if parts else ("", 0)
    if times > 1:
        message = f"rights: {times} files would land as {name}; name each once"
        raise RecipeError(message)
    return parts


def receive_rights(web: Web, part: Part, partial: Path, flow: Flow) -> Received:
    """Write such a file to `partial`: an archive by its length and checksums, a page of up to 64 MiB as it is sent.

    SnapshotIncomplete if it is not there; SourceRefused and SourceBusy as any request.
    """
    if not part.address.startswith(_OF_WEB):
        return copy_part(part, partial, web, flow)
    if part.address.endswith(".gz"):
        return download(web, part, partial, flow)
    return write_whole(fetched(web, part.address, LISTING_BYTES), part, partial, flow)


def _name(address: str) -> str:
    if address.startswith(_OF_WEB):
        require_address(address)
        address = address.partition("://")[2]
    else:
        address = address.rstrip("/").rpartition("/")[2]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", address).strip("-")[-LONGEST:]
    if not name:
        message = "rights: name the address of a file"
        raise RecipeError(message)
    return f"{RIGHTS}{name}"
