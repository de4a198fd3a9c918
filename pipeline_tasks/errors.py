"""Every refusal Refinery makes, by what a caller should do about it.

RefineryError
├── RecipeError      the request makes no sense      never retried   exit 78
│   ├── NothingLanded
├── ContractError    the data breaks a promise       never retried   exit 65
│   ├── DigestMismatch, SchemaBroken, RowsVanished, BudgetExceeded, DeterminismViolation
├── GateRefused      legal data, unwelcome           never retried   exit 65
└── Transient        the world was busy              retried         exit 75
    ├── StorageBusy, JobLost, NoSpace, SnapshotIncomplete
"""

from typing import ClassVar


class RefineryError(Exception):
    """Base of all refusals; the message names the record or manifest and the way out."""

    exit_code: ClassVar[int] = 70


class RecipeError(RefineryError, ValueError):
    """The request makes no sense: a key, path, model or credential is wrong."""

    exit_code = 78


class NothingLanded(RecipeError):
    """No snapshot has landed at the input."""


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


class NoSpace(Transient):
    """A disk is full; nothing was committed."""


class SnapshotIncomplete(Transient):
    """A snapshot promises files that have not landed yet."""
