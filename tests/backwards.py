"""A generator of another distribution that writes each word of a text backwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.brought import site

KIND, LICENSE = "backwards", "Apache-2.0"

CODE = """
import hashlib
from pathlib import Path

from pipeline_tasks.generators.generator import Written
from pipeline_tasks.generators.kinds import Kind
from tests.backwards import KIND, LICENSE, written


class Backwards:
    license, hardware = LICENSE, "cpu"

    def __init__(self, model, sampling):
        self.name = f"{KIND}@{hashlib.sha256(Path(model.model).read_bytes()).hexdigest()[:16]}"

    def write(self, requests):
        for at, request in enumerate(requests):
            text = request.user.partition("-----\\n")[2].rpartition("\\n-----")[0]
            words = len(text.split())
            yield at, Written(written(text), "stop", words, words)


CARD = Kind(Backwards, lambda model: None, is_steady=True)
"""


def written(text: str) -> str:
    """Return what is generated of a text."""
    return " ".join(word[::-1] for word in text.split())


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Bring the generator as a package of another distribution does, as long as this lasts."""
    with site(folder) as place:
        place.install(KIND, "refinery.generators", {KIND: f"brought_{KIND}:CARD"}, CODE)
        yield
