"""Which files this process has open, of those that a test knows: others come and go as what earlier tests left ends."""

from contextlib import suppress
from pathlib import Path


def descriptors(folder: Path) -> list[str]:
    """Return the open files below a folder, sorted; also those that have no name any more."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of this listing
            found.append(str(link.readlink()))
    return sorted(path for path in found if path.startswith(f"{folder}/"))
