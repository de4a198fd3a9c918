"""What a policy of IAM lets somebody do, by the rules of its evaluation that our policies use."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any


def allows(statements: Iterable[Mapping[str, Any]], action: str, arn: str) -> bool:
    """Whether statements let something be done with an object: one allows it, and none denies it."""
    effects = {
        each["Effect"]
        for each in statements
        if action in listed(each["Action"]) and any(fnmatchcase(arn, pattern) for pattern in listed(each["Resource"]))
    }
    return effects == {"Allow"}


def listed(value: str | list[str]) -> list[str]:
    """The entries of what a policy writes as one string or several."""
    return [value] if isinstance(value, str) else value
