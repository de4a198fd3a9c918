"""A generator that another distribution brings: it answers in the words of its file, by a hash of the request."""

from tests.brought import Site

KIND_OF_TESTS = "words_of_a_file"

CODE = """
import hashlib
import random
from pathlib import Path

from pipeline_tasks.generators.generator import Written
from pipeline_tasks.generators.kinds import Kind

CONTEXT = 800


class Words:
    hardware, license = "cpu", "CC0-1.0"

    def __init__(self, model, sampling):
        body = Path(model.model).read_bytes()
        self.words, self.sampling = body.decode().split(), sampling
        self.name = "words@" + hashlib.sha256(body).hexdigest()[:16]

    def write(self, requests):
        for place, request in enumerate(requests):
            yield place, self.written(request)

    def written(self, request):
        read = len((request.system + " " + request.user).split())
        if read + self.sampling.max_tokens > CONTEXT:
            return Written(None, "too_long", read, 0)
        if "REFUSE" in request.user:
            return Written(None, "refused", read, 0, "asked_for")
        seed = request.seed if self.sampling.temperature else 0
        drawn = random.Random(f"{request.system}|{request.user}|{seed}")
        text = request.user.split() + drawn.choices(self.words, k=3)
        most = self.sampling.max_tokens
        stop = "length" if len(text) > most else "stop"
        return Written(" ".join(text[:most]), stop, read, min(len(text), most))


def check(model):
    Path(model.model).read_text().split()


KIND = Kind(Words, check, is_steady=True)
"""


def install_generator(place: Site) -> None:
    """Install the package in a site of this process."""
    place.install("own_generator", "refinery.generators", {KIND_OF_TESTS: "brought_own_generator:KIND"}, CODE)
