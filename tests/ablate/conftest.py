"""Two planted arms, and held-out documents of their language."""

import random
import shutil
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


@pytest.fixture
def own(arms: tuple[str, str], tmp_path: Path) -> tuple[str, str]:
    """Both arms, in roots that a test may change."""
    copied = []
    for arm in arms:
        root, _, name = arm.rpartition("/")
        copied.append(f"{shutil.copytree(root, tmp_path / Path(root).parent.name / 'root')}/{name}")
    return copied[0], copied[1]
