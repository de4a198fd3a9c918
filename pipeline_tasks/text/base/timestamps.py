"""Turn dates into numbers that sort by time, whatever their punctuation."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def sortable_timestamps(dates: pa.Array) -> pa.Array:
    """Return `YYYYMMDDhhmmss` of each date as an integer, zeros for its missing parts; 0 for a null or empty date."""
    digits: Any = pc.replace_substring_regex(dates.cast(pa.string()).fill_null(""), r"\D", "")
    whole = pc.utf8_rpad(pc.utf8_slice_codeunits(digits, 0, 14), 14, "0").cast(pa.int64())
    return pc.if_else(pc.equal(digits, ""), 0, whole)
