"""A generator of another distribution that notes what it is asked, and takes its time: for tests of `rephrase`."""

import atexit
import json
import shutil
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from tests.brought import Site

KIND = "noting"

CODE = '''
import hashlib
import json
import os
import time
from pathlib import Path

from pipeline_tasks.errors import JobLost
from pipeline_tasks.generators.generator import Written
from pipeline_tasks.generators.kinds import Kind


class Noting:
    """Answers `batch` requests at a time, behind a pause, in another order than it was asked."""

    license = "CC0-1.0"

    def __init__(self, model, sampling):
        body = Path(model.model).read_bytes()
        self.how, self.sampling = json.loads(body), sampling
        self.name = "noting@" + hashlib.sha256(body).hexdigest()[:16]
        self.hardware = os.environ.get("NOTING_HARDWARE", "cpu")

    def write(self, requests):
        size = self.how.get("batch", 8)
        for start in range(0, len(requests), size):
            part = requests[start : start + size]
            self.note(part)
            time.sleep(self.how.get("pause", 0))
            for at in reversed(range(len(part))):
                yield start + at, self.written(part[at])

    def note(self, requests):
        keys = [hashlib.sha256(repr(request).encode()).hexdigest()[:16] for request in requests]
        with open(self.how["log"], "a") as log:
            log.write(json.dumps(keys) + "\\n")

    def written(self, request):
        text = request.user.partition("-----\\n")[2].rpartition("\\n-----")[0] or request.user
        if self.how.get("gone") and self.how["gone"] in text and not Path(self.how["log"] + ".back").exists():
            raise JobLost("the server is gone")
        if "BREAK" in text:
            raise ValueError("cannot read it")
        if "REFUSE" in text:
            return Written(None, "refused", len(text.split()), 0, "content_filter")
        words = text.split()[: self.sampling.max_tokens]
        seed = request.seed if self.sampling.temperature else 0
        mark = hashlib.sha256(f"{os.environ.get('NOTING_MARK', '')}{request.system}{request.user}{seed}".encode())
        stop = "length" if len(text.split()) > self.sampling.max_tokens else "stop"
        return Written(" ".join([*words, mark.hexdigest()[:8]]), stop, len(text.split()), len(words) + 1)


KIND = Kind(Noting, lambda model: json.loads(Path(model.model).read_text()), is_steady=True)
'''


def install(place: Site) -> None:
    """Install the generator in a site of this process."""
    place.install("noting", "refinery.generators", {KIND: "brought_noting:KIND"}, CODE)


@cache
def install_here() -> None:
    """Install the generator for the rest of this process."""
    folder = Path(tempfile.mkdtemp(prefix="noting-"))
    atexit.register(shutil.rmtree, folder)
    sys.path.append(str(folder))
    install(Site(folder))


def model(folder: Path, **how: Any) -> dict[str, Any]:
    """Return the params of a model that answers so; what it is asked is in `folder/asked`."""
    (folder / "model.json").write_text(json.dumps({"log": str(folder / "asked"), **how}))
    return {"kind": KIND, "model": str(folder / "model.json")}


def asked(folder: Path) -> Counter[str]:
    """Return how often each request was asked."""
    path = folder / "asked"
    lines = path.read_text().splitlines() if path.exists() else []
    return Counter(key for line in lines for key in json.loads(line))


def batches(folder: Path) -> int:
    """Return how many batches were asked."""
    path = folder / "asked"
    return path.read_bytes().count(b"\n") if path.exists() else 0
