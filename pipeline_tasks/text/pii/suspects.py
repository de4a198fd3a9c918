"""Marks the texts of a column that may have personal data, in one compiled pass; no text that has some is left out."""

import numpy as np
import pyarrow as pa

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.pii.address_runs import FEWEST_COLONS, IPV4_PARTS, dotted_end, groups_end
from pipeline_tasks.text.pii.form_runs import form_places, next_frame, next_long_word
from pipeline_tasks.text.pii.forms import forms_of
from pipeline_tasks.text.pii.kinds import DEFAULT_KINDS, Kind
from pipeline_tasks.text.pii.mail_signs import next_sign, written_forms_of
from pipeline_tasks.text.pii.phone_runs import FEWEST_DIGITS, run_from
from pipeline_tasks.text.pii.scanning import next_colon, next_digit
from pipeline_tasks.text.pii.visible import reads_otherwise, visible_bytes


def suspects(texts: pa.Array, kinds: frozenset[Kind] = DEFAULT_KINDS) -> pa.Array:
    """Return for each text whether it may have personal data of some kinds; a null has none.

    What e-mail addresses, phone numbers and IP addresses look like makes a text suspect whatever the kinds are.
    """
    offsets, data = views(texts)
    marks = np.zeros(len(texts), np.bool_)
    _mark(offsets, data, marks, *forms_of(kinds))
    return pa.array(marks)


@inlined
def _has_digits(text):
    """Return whether a text has a run of digits as long as a phone number, or four numbers with dots between."""
    at = next_digit(text, 0)
    while at < len(text):
        end, parts = dotted_end(text, at)
        if parts == IPV4_PARTS:
            return True
        end, digits = run_from(text, at)
        if digits >= FEWEST_DIGITS:
            return True
        at = next_digit(text, end)
    return False


@inlined
def _has_colons(text):
    """Return whether a text has two colons with at most four hexadecimal digits between."""
    at = next_colon(text, 0)
    while at < len(text):
        if groups_end(text, at)[1] >= FEWEST_COLONS:
            return True
        at = next_colon(text, at + 1)
    return False


@compiled
def _is_suspect(text, forms, words):
    """Return whether a text that reads as it is may have personal data."""
    return (
        _has_digits(text)
        or next_sign(text, 0)[0] < len(text)
        or _has_colons(text)
        or written_forms_of(text) > 0
        or (words and min(next_long_word(text, 0)[0], next_frame(text, 0)) < len(text))
        or len(form_places(text, forms)) > 0
    )


@compiled
def _mark(offsets, data, marks, forms, words):
    """Fill marks[row]; each text is read by itself, as people see it, and to its first sign of a finding."""
    for row in range(len(marks)):
        text = data[offsets[row] : offsets[row + 1]]
        if reads_otherwise(text):
            marks[row] = _is_suspect(visible_bytes(text)[0], forms, words)
        else:
            marks[row] = _is_suspect(text, forms, words)
