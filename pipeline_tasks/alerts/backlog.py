"""The alert of a backlog: the oldest snapshot that has landed, or that is expected, and is not published."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from pipeline_tasks.alerts.alert import Alert

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Backlog:
    """The snapshots that are not published, with the Unix times from which on each was there or was expected."""

    landed: Mapping[str, float]
    expected: Mapping[str, float]

    def since(self) -> dict[str, float]:
        """Return all of them, the oldest first."""
        both = {**self.expected, **self.landed}
        return dict(sorted(both.items(), key=lambda pair: (pair[1], pair[0])))


def day_of(snapshot: str) -> date | None:
    """Return the date that a snapshot is named by; None for another name."""
    try:
        day = date.fromisoformat(snapshot)
    except ValueError:
        return None
    return day if day.isoformat() == snapshot else None


def midnight(day: date) -> float:
    """Return the Unix time at which a date begins in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def backlog_of(landed: Mapping[str, float], published: Collection[str], now: float) -> Backlog:
    """Return what is not published of what has landed, and of the dates behind the last published date.

    `landed` are the Unix times at which snapshots landed; one that is named by a date counts from the end of that date.
    A date is expected from its end on, and only where a date was ever published.
    """
    pending = {
        name: midnight(day + timedelta(days=1)) if (day := day_of(name)) else at
        for name, at in landed.items()
        if name not in published
    }
    dates = [day for name in published if (day := day_of(name))]
    expected = {}
    if dates:
        day, today = max(dates) + timedelta(days=1), datetime.fromtimestamp(now, UTC).date()
        while day < today:
            expected[day.isoformat()] = midnight(day + timedelta(days=1))
            day += timedelta(days=1)
    return Backlog(pending, {name: at for name, at in expected.items() if name not in pending})


def backlog_alert(recipe: str, backlog: Backlog, hours: float, now: float) -> Alert | None:
    """Return the alert if the oldest snapshot that is not published is older than `hours`; 0: never."""
    pending = backlog.since()
    old = {name: (now - at) / HOUR for name, at in pending.items() if now - at > hours * HOUR}
    if not hours or not old:
        return None
    name, age = next(iter(old.items()))
    state = "landed" if name in backlog.landed else "expected"
    return Alert(
        "backlog",
        f"Snapshot {name} of recipe {recipe} is not published",
        (
            f"{state} {age:,.0f} hours ago; the limit is {hours:g}",
            f"not published are {len(backlog.landed):,} that landed and {len(backlog.expected):,} that are expected",
        ),
        "Landed: look at its run, which waits, was refused or failed. Expected: look at what its task `sense` misses, "
        "and at the crawler.",
    )
