"""Reads the Public Suffix List, once for each of the questions that are asked of it."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


@cache
def suffixes(*, private: bool, unknown: bool = True) -> "PublicSuffixList":
    """Return the list of registries, with `private` that of hosts who let others have names, too.

    With `unknown` a top-level domain that is not listed counts as one (publicsuffix.org, "Algorithm").
    """
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList(only_icann=not private, accept_unknown=unknown)
