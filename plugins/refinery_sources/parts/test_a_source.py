"""What every source promises."""

from refinery_sources.parts.a_source import SOURCE
from refinery_sources.testing import check_source


def test_it_keeps_what_every_source_promises() -> None:
    """It lands whole and the same each time, or not at all."""
    check_source(SOURCE(days=3))
