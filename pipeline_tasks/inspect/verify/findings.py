"""What a verification found: problems with the way to heal each, notes, counts, and the records of each version."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pipeline_tasks.errors import RefineryError, Transient


@dataclass(frozen=True, slots=True)
class Problem:
    """One object that is not what it should be, and what to do about it."""

    object: str
    problem: str
    expected: str = ""
    actual: str = ""
    heal: str = ""

    def __str__(self) -> str:
        values = f" (expected {self.expected}, is {self.actual})" if self.expected or self.actual else ""
        return f"{self.object}: {self.problem}{values}; {self.heal}" if self.heal else f"{self.object}: {self.problem}"


@dataclass(slots=True)
class Account:
    """The records of one version: those that came in, the rejected ones by reason, and the published documents.

    `copies` are the uses of documents beyond the first, and `offspring` generated texts: they did not come in, and are
    published, or rejected.
    """

    recipe: str
    version: int
    snapshot: str
    records: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    published: int = 0
    copies: int = 0
    offspring: int = 0

    @property
    def due(self) -> int:
        """All that has to be accounted for."""
        return self.records + self.copies + self.offspring

    @property
    def balanced(self) -> bool:
        """Whether every record that came in, every copy and offspring is published, or rejected with a reason."""
        return self.due == self.published + sum(self.rejected.values())


@dataclass(slots=True)
class Findings:
    """Collects problems from several threads; `checked` counts objects by kind, `bytes` are those that were read.

    `full` says whether every byte is read, `--fast` or not.
    """

    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    full: bool = True

    def add(self, problem: Problem) -> None:
        """Add a problem unless the same one is known."""
        with self.lock:
            if problem not in self.problems:
                self.problems.append(problem)

    def is_damaged(self, uri: str) -> bool:
        """Return whether an object has a problem: then what is read of it says nothing more."""
        with self.lock:
            return any(problem.object == uri for problem in self.problems)

    def note(self, text: str) -> None:
        """Add a remark that is no problem."""
        with self.lock:
            if text not in self.notes:
                self.notes.append(text)

    def count(self, kind: str, size: int = 0) -> None:
        """Count a checked object, and the bytes that were read of it."""
        with self.lock:
            self.checked[kind] += 1
            self.bytes += size

    def take(self, facts: Mapping[str, Any]) -> None:
        """Add what a worker has found."""
        for problem in facts["problems"]:
            self.add(Problem(*problem))
        for text in facts["notes"]:
            self.note(text)
        self.checked.update(facts["checked"])
        self.bytes += facts["bytes"]

    @contextmanager
    def guarded(self, name: str, heal: str) -> Iterator[None]:
        """Turn whatever a damaged object makes its reader raise into a problem of the object `name`.

        A store that is busy says nothing about the object, so that error is raised.
        """
        try:
            yield
        except Transient:
            raise
        except RefineryError as error:
            self.add(Problem(name, str(error).removeprefix(f"{name}: "), heal=heal))
        except FileNotFoundError:
            self.add(Problem(name, "is missing", heal=heal))
        except Exception as error:  # noqa: BLE001 -- a reader of damaged bytes may raise anything, and the rest is checked
            self.add(Problem(name, f"cannot be read ({type(error).__name__}: {str(error)[:200]})", heal=heal))


def found(check: Callable[[Findings], None]) -> dict[str, Any]:
    """Return what a check finds in a worker, as `Findings.take` reads it."""
    findings = Findings()
    check(findings)
    problems = [[each.object, each.problem, each.expected, each.actual, each.heal] for each in findings.problems]
    return {"problems": problems, "notes": findings.notes, "checked": findings.checked, "bytes": findings.bytes}


def is_sound(facts: Mapping[str, Any]) -> bool:
    """Return whether a check has found no problem: what has one is looked at again, as somebody may have healed it."""
    return not facts["problems"]
