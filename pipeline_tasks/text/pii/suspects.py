"""Marks the texts of a column that may have personal data, in one compiled pass; no text that has some is left out."""

import numpy as np
import pyarrow as pa

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.pii.address_runs import FEWEST_COLONS, IPV4_PARTS, dotted_end, groups_end
from pipeline_tasks.text.pii.mail_signs import next_sign, written_forms_of
from pipeline_tasks.text.pii.phone_runs import FEWEST_DIGITS, run_from
from pipeline_tasks.text.pii.scanning import next_colon, next_digit


def suspects(texts: pa.Array) -> pa.Array:
    """Return for each text whether it may have an e-mail address, a phone number or an IP address; a null has none."""
    offsets, data = views(texts)
    marks = np.zeros(len(texts), np.bool_)
    _mark(offsets, data, marks)
    return pa.array(marks)


@inlined
def _has_digits(data, at, stop):
    """Return whether data[at:stop] has a run of digits as long as a phone number, or four numbers with dots between."""
    at = next_digit(data, at)
    while at < stop:
        end, parts = dotted_end(data, at)
        if parts == IPV4_PARTS:
            return True
        end, digits = run_from(data, at)
        if digits >= FEWEST_DIGITS:
            return True
        at = next_digit(data, end)
    return False


@inlined
def _has_colons(data, at, stop):
    """Return whether data[at:stop] has two colons with at most four hexadecimal digits between."""
    at = next_colon(data, at, stop)
    while at < stop:
        if groups_end(data, at)[1] >= FEWEST_COLONS:
            return True
        at = next_colon(data, at + 1, stop)
    return False


@compiled
def _mark(offsets, data, marks):
    """Fill marks[row]; what follows a text in the column can only make it a suspect."""
    for row in range(len(marks)):
        start, stop = offsets[row], offsets[row + 1]
        marks[row] = (
            _has_digits(data, start, stop)
            or next_sign(data, start, stop)[0] < stop
            or _has_colons(data, start, stop)
            or written_forms_of(data, start, stop) > 0
        )
