"""Dates of any common form become one that sorts by time; those that may be two days are none."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.landing.dates import iso_date


@pytest.mark.parametrize(
    ("value", "date"),
    [
        ("2026-11-20T10:20:30Z", "2026-11-20T10:20:30Z"),
        ("2026-11-20T10:20:30.123456Z", "2026-11-20T10:20:30.123456Z"),
        ("2026-11-20", "2026-11-20"),
        ("2026-11", "2026-11"),
        ("2026", "2026"),
        ("2026-1-5", "2026-01-05"),
        ("2026/11/20", "2026-11-20"),
        ("2026-11-20 10:20:30", "2026-11-20T10:20:30Z"),
        ("2026-11-20 10:20", "2026-11-20T10:20:00Z"),
        ("2026-11-20T10:20:30+02:00", "2026-11-20T08:20:30Z"),
        ("2026-11-20T23:20:30-0200", "2026-11-21T01:20:30Z"),
        ("2026-11-20 10:20:30+00:00", "2026-11-20T10:20:30Z"),
        ("20 Nov 2026", "2026-11-20"),
        ("20-Nov-2026", "2026-11-20"),
        ("Nov. 20th, 2026", "2026-11-20"),
        ("November 5, 2026", "2026-11-05"),
        ("Fri, 20 Nov 2026 10:20:30 GMT", "2026-11-20T10:20:30Z"),
        ("Fri, 20 Nov 2026 10:20:30 +0100 (CET)", "2026-11-20T09:20:30Z"),
        ("Fri Nov 20 10:20:30 2026", "2026-11-20T10:20:30Z"),
        ("20261120", "2026-11-20"),
        ("20261120102030", "2026-11-20T10:20:30Z"),
        ("20261120T102030Z", "2026-11-20T10:20:30Z"),
        ("1795170030", "2026-11-20T10:20:30Z"),
        ("1795170030.25", "2026-11-20T10:20:30Z"),
        ("1795170030123", "2026-11-20T10:20:30Z"),
        ("20.11.2026", "2026-11-20"),
        ("3. 4. 2026", "2026-04-03"),
        ("20/11/2026", "2026-11-20"),
        ("11/20/2026 10:20 PM", "2026-11-20T22:20:00Z"),
        ("12/20/2026 12:05 a.m.", "2026-12-20T00:05:00Z"),
        ("4/4/2026", "2026-04-04"),
        ("03/04/2026", None),
        ("03-04-2026", None),
        ("2026-13-05", None),
        ("2026-02-30 10:00", None),
        ("31 Nov 2026", None),
        ("20 Foo 2026", None),
        ("2026112010", None),
        ("5", None),
        ("soon", None),
        ("", None),
    ],
)
def test_forms(value: str, date: str | None) -> None:
    assert iso_date(value) == date
    assert iso_date(f" {value}\n") == (iso_date(value) if value else None)


MOMENTS = st.datetimes(datetime(1995, 1, 1), datetime(2029, 12, 31))  # noqa: DTZ001 -- the zone is drawn beside it
ZONES = st.integers(-14 * 4, 14 * 4).map(lambda quarters: timezone(timedelta(minutes=15 * quarters)))


@given(MOMENTS, ZONES, st.sampled_from(["%Y-%m-%dT%H:%M:%S%z", "%a, %d %b %Y %H:%M:%S %z", "%Y/%m/%d %H:%M:%S %z"]))
def test_any_moment_sorts_by_time(moment: datetime, zone: timezone, form: str) -> None:
    there = moment.replace(microsecond=0, tzinfo=UTC).astimezone(zone)
    assert iso_date(there.strftime(form)) == moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@given(st.text(max_size=30))
def test_any_text_is_a_date_or_none(text: str) -> None:
    date = iso_date(text)
    assert date is None or iso_date(date) == date
