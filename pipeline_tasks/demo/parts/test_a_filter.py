"""What every filter promises, and a text that fails each of its rules."""

from pipeline_tasks.demo.parts.a_filter import FILTER
from pipeline_tasks.testing.filters import check_filter


def test_it_keeps_what_every_filter_promises() -> None:
    """Signals are finite for any bytes, and each rule rejects by its bound."""
    check_filter(FILTER, {"shouts": "Buy now!!! Only today!!!"})
