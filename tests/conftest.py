"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real crawl data that lies beside the project on some machines; tests that need it skip elsewhere."""
    place = Path(os.environ.get("REFINERY_SHARED_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not place.is_dir():
        pytest.skip(f"no crawl data at {place}: set REFINERY_SHARED_DATA to run this test")
    return place
