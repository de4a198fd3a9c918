"""A server of llama.cpp passes the suite of generators.

`REFINERY_LLAMA_PYTHON` is the interpreter of an environment with llama-cpp-python[server], gguf and safetensors.
"""

import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pipeline_tasks.generators.generator import Model, Sampling
from pipeline_tasks.testing.generators import check_generator
from tests.ports import free_port
from tests.tiny_writer import CONTEXT, trained

pytest.importorskip("torch", reason="needs torch: make models-test")
pytest.importorskip("transformers", reason="needs transformers: make models-test")

PYTHON = os.environ.get("REFINERY_LLAMA_PYTHON", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="needs a server of llama.cpp: REFINERY_LLAMA_PYTHON")

NAME = "tiny"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def address(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file, port = tmp_path_factory.mktemp("gguf") / "tiny.gguf", free_port()
    subprocess.run([PYTHON, str(Path(__file__).with_name("gguf_of_folder.py")), str(tiny), str(file)], check=True)
    whole = {"type_k": 0, "type_v": 0, "flash_attn": False}  # keys and values in fp32, as in this process
    asked = {"model": file, "model_alias": NAME, "port": port, "n_ctx": CONTEXT, "n_threads": 1, **whole}
    options = [part for key, value in asked.items() for part in (f"--{key}", str(value))]
    with subprocess.Popen([PYTHON, "-m", "llama_cpp.server", *options], stderr=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}/v1"
        try:
            wait_for(f"{url}/models")
            yield url
        finally:
            process.kill()


def wait_for(url: str) -> None:
    for _ in range(240):
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.5)
    message = f"nothing answers at {url}"
    raise RuntimeError(message)


@pytest.fixture(autouse=True)
def reached(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFINERY_ENDPOINT", address)


@pytest.mark.parametrize("kind", ["endpoint", "completions"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_suite(kind: str, temperature: float) -> None:
    sampling = Sampling(temperature, 0.95, max_tokens=24)
    check_generator(Model(kind=kind, name=NAME), sampling, bad={"word " * 600: "too_long"})
