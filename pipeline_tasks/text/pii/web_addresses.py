"""Removes e-mail addresses, names and passwords from URLs."""

from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.text.pii.candidates import Limits, pattern
from pipeline_tasks.text.pii.kinds import PLACEHOLDERS

pc: Any = pyarrow.compute

_ALL = Limits()
_SUSPECT = r"@|%(?:25)*40"
_USER = r"^([A-Za-z][A-Za-z0-9+.\-]*://)[^/?#]*@"
"""`user:password@` ahead of a host (RFC 3986, 3.2.1)."""


def scrub_urls(urls: pa.Array, limits: Limits = _ALL) -> pa.Array:
    """Return an array of URLs without personal data: `<EMAIL>` for e-mail addresses, no user ahead of the host."""
    suspect = pc.fill_null(pc.match_substring_regex(urls, _SUSPECT), fill_value=False)
    scrubbed = pa.array([scrub_url(url, limits) for url in urls.filter(suspect).to_pylist()], urls.type)
    return pc.replace_with_mask(urls, suspect, scrubbed)


def scrub_url(url: str, limits: Limits = _ALL) -> str:
    """Return one URL, or a text with URLs, without the e-mail addresses in it."""
    from pipeline_tasks.text.pii.emails import find_emails
    from pipeline_tasks.text.pii.findings import replace_spans

    body = bytes(pattern(_USER).sub(rb"\1", url.encode(errors="replace")))
    spans = list(find_emails(body, limits))
    return replace_spans(body, sorted(spans), lambda span: PLACEHOLDERS[span.kind]).decode()
