"""Logs the looks of commands that print texts, or names of pages, of a shared root."""

import argparse
import os
from collections.abc import Iterable, Mapping

from pipeline_tasks.inspect.command import whoami
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store import access_log

_ELSEWHERE = ("root", "command", "debug", "version", "json", "requires_root", "purpose", "recipe", "snapshot", "stage")
"""Options that say nothing of what is looked for, or that an entry has as they are."""


def add_purpose(parser: argparse.ArgumentParser) -> None:
    """Add `--purpose`, which `looked` logs."""
    help_ = "why you look, for the access log of a shared root"
    default = os.environ.get(access_log.PURPOSE, "")
    parser.add_argument("--purpose", default=default, metavar="WHY", help=f"{help_} (default: {access_log.PURPOSE})")


def names_of(version: Version) -> dict[str, str]:
    """Return what a look at a version is of."""
    return {"recipe": version.recipe, "snapshot": version.snapshot, "version": str(version.number)}


def looked(
    options: argparse.Namespace,
    rows: int,
    documents: Iterable[str] = (),
    version: Version | Mapping[str, str] | None = None,
    **of: str,
) -> None:
    """Log what a command is about to print, where looks at its root are logged; LookRefused if it cannot be.

    `of` are names of what is looked at, and `version` is what was published of them, or its names.
    """
    if not access_log.is_logged(options.root):
        return
    if version is not None:
        of |= names_of(version) if isinstance(version, Version) else version
    named = {name: getattr(options, name, "") for name in ("recipe", "snapshot", "stage")}
    words = {name: value for name, value in vars(options).items() if name not in _ELSEWHERE}
    look = access_log.Look(
        by=whoami(),
        through="command",
        what=options.command.rpartition(" ")[2],  # as pages name it, and earlier releases
        of={**named, **of},
        asked=access_log.asked({name: value for name, value in words.items() if _is_plain(value)}),
        rows=rows,
        documents=tuple(documents),
        purpose=getattr(options, "purpose", "") or os.environ.get(access_log.PURPOSE, ""),
    )
    access_log.record(options.root, look)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | list | tuple)
