"""Every refusal Refinery makes, by what a caller should do about it.

RefineryError
├── RecipeError      the request makes no sense      never retried   exit 78
│   ├── NothingLanded, SourceRefused, LookRefused
├── ContractError    the data breaks a promise       never retried   exit 65
│   ├── DigestMismatch, SchemaBroken, RowsVanished, BudgetExceeded, DeterminismViolation, SignatureRefused
├── KernelFailed     a defect or the data ended it   tried elsewhere exit 70
├── GateRefused      legal data, unwelcome           never retried   exit 65
└── Transient        the world was busy              retried         exit 75
    ├── StorageBusy, JobLost, ClusterUnreachable, NoMemory, NoSpace, MachineFailed, SnapshotIncomplete,
        SourceBusy
"""

import re
from typing import ClassVar

_TWO_STOPS = re.compile(r"(?<=[^\s./])\.\.(?=\s|$)")


def cause(error: Exception) -> str:
    """Return in plain words why stored JSON could not be read, and not in those of the interpreter."""
    text = str(error)
    if isinstance(error, KeyError):
        return f"it has no field {text}"
    named = re.search(
        r"unexpected keyword argument '(\w+)'|required (?:positional|keyword-only) arguments?: (.+)", text
    )
    if named:
        return f"it has the field {named[1]!r}, which is not known" if named[1] else f"it has no field {named[2]}"
    if isinstance(error, TypeError | AttributeError):
        return "a field has another type than it should"
    return "it is nested too deeply" if isinstance(error, RecursionError) else text


class RefineryError(Exception):
    """Base of all refusals; the message names the record or manifest and the way out."""

    exit_code: ClassVar[int] = 70

    def __str__(self) -> str:
        """Return the message; what a library said within it may end in a full stop of its own."""
        return _TWO_STOPS.sub(".", super().__str__())


class RecipeError(RefineryError, ValueError):
    """The request makes no sense: a key, path, model or credential is wrong."""

    exit_code = 78


class NothingLanded(RecipeError):
    """No snapshot has landed at the input."""


class SourceRefused(RecipeError):
    """A source answers that it wants no more requests of ours; a person decides when to go on."""


class LookRefused(RecipeError):
    """Texts are not shown to who asks: without a purpose where one is needed, or a place to log the look."""


class LibraryMissing(RecipeError):
    """A library is not installed here whose version is identity."""


class ContractError(RefineryError, ValueError):
    """The data breaks a promise about it."""

    exit_code = 65


class DigestMismatch(ContractError):
    """Stored bytes are not the bytes that were committed."""


class SchemaBroken(ContractError):
    """A stage read or wrote columns other than its card says."""


class RowsVanished(ContractError):
    """Rows in differ from kept + rejected + quarantined."""


class BudgetExceeded(ContractError):
    """More records of a partition were quarantined than its error budget allows."""


class DeterminismViolation(ContractError):
    """Two attempts at the same work produced different bytes."""


class SignatureRefused(ContractError):
    """An envelope is not signed by the key, or is none."""


class KernelFailed(RefineryError):
    """The work on a shard raised an error that is neither a refusal nor its machine's; it may have a record's text."""


class GateRefused(RefineryError):
    """A gate refused valid data because it is out of bounds; a person decides."""

    exit_code = 65


class Transient(RefineryError, OSError):
    """A service, disk or input was not ready; the same request may succeed later."""

    exit_code = 75


class StorageBusy(Transient):
    """The object store failed or timed out more often than was worth retrying here."""


class JobLost(Transient):
    """A worker, executor or job disappeared before it reported."""


class ClusterUnreachable(JobLost):
    """Nothing answers at the address of a cluster, or it refuses the connection."""


class NoMemory(JobLost):
    """A process got no more memory."""


class NoSpace(Transient):
    """A disk is full; nothing was committed."""


class MachineFailed(Transient):
    """A disk, a file or a connection of a worker's machine failed under its work."""


class SnapshotIncomplete(Transient):
    """A snapshot promises files that have not landed yet."""


class SourceBusy(Transient):
    """A source of data failed, broke off or asked to wait more often than was worth trying again here."""


def error_of(code: int) -> type[RefineryError]:
    """Return the class of the error that a process of ours ended with, by its exit code; below 0 a signal ended it."""
    if code < 0:
        return JobLost
    return {kind.exit_code: kind for kind in (RecipeError, ContractError, Transient)}.get(code, RefineryError)
