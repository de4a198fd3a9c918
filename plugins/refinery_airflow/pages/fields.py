"""Types of the fields that addresses have, each no longer than what it can be, and statuses of answers."""

from typing import Annotated

from fastapi import Query

Term = Annotated[str, Query(max_length=4096)]
"""What is asked for: no longer than a URL."""

Name = Annotated[str, Query(max_length=200)]
"""A version as a person names it, or a phrase."""

Where = Annotated[str, Query(max_length=400)]
"""Conditions on columns, in one line."""

Reason = Annotated[str, Query(max_length=200)]
"""The reason of rejected rows, "" for any."""

Seed = Annotated[int, Query(ge=0, lt=1 << 53)]
"""The seed of a sample."""

Row = Annotated[int, Query(ge=0)]
"""The number of a row."""

NOT_FOUND, SEE_OTHER, UNPROCESSABLE = 404, 303, 422
"""Statuses of answers."""
