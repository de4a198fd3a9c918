"""Finds digits in a text, eight bytes at a time, inside compiled loops."""

import numpy as np

from pipeline_tasks.text.base.ascii import is_digit
from pipeline_tasks.text.base.compiled import inlined
from pipeline_tasks.text.base.eight_bytes import load_eight, mark_digits


@inlined
def next_digit(data, at):
    """Return the place of the first digit from `at` on, the end of the text if there is none."""
    while at < len(data):
        if at + 8 <= len(data) and mark_digits(load_eight(data, at)) == np.uint64(0):
            at += 8
        elif is_digit(data[at]):
            break
        else:
            at += 1
    return at
