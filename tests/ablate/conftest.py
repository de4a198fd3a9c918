"""Two planted arms, and held-out documents of their language."""

import random
from pathlib import Path

import pytest

from tests.ablate import planted


@pytest.fixture(scope="session")
def arms(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two small training datasets of the same language."""
    folder = tmp_path_factory.mktemp("arms")
    draws = random.Random(5)
    first, second = (
        planted.arm(folder, name, fault(planted.texts(120, 1), draws))
        for name, fault in (("whole", planted.whole), ("shuffled", planted.shuffled))
    )
    return first, second


@pytest.fixture
def sets(tmp_path: Path) -> str:
    return planted.held_out(tmp_path, 50)
