"""What every source promises."""

from pipeline_tasks.demo.parts.a_source import SOURCE
from pipeline_tasks.testing.sources import check_source


def test_it_keeps_what_every_source_promises() -> None:
    """It lands whole and the same each time, or not at all."""
    check_source(SOURCE(days=3))
