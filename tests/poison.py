"""Poisons a stage for every process of a run: `extract` raises, or kills its process, at pages of one site."""

import os
from pathlib import Path

POISON = "poison.example"
"""The host whose pages end the process, or raise."""

SITECUSTOMIZE = f"""
import functools, importlib.util, os, signal, sys

class Poisoned:
    def find_spec(self, name, path=None, target=None):
        if name != "pipeline_tasks.stages.extract":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            real = module.extract_pages

            @functools.wraps(real)
            def extract_pages(pages, *others, **how):
                yield from real(checked(pages), *others, **how)

            module.extract_pages = extract_pages

        spec.loader.exec_module = exec_module
        return spec


def checked(pages):
    for batch in pages:
        # a kernel that raises without rows, too, is broken: its rows are not looked through for one to blame
        if not batch.num_rows or any("{POISON}" in url for url in batch.column("url").to_pylist()):
            if os.environ["TEST_POISON"] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if os.environ["TEST_POISON"] == "disk":
                raise OSError("No space left on device")
            raise ValueError("a page that no extractor survives\\nits SECRET text: of two lines")
        yield batch


sys.meta_path.insert(0, Poisoned())
"""


def poisoned(folder: Path, how: str) -> dict[str, str]:
    """Return the variables under which every Python process is poisoned, which `raise`, `kill` or `disk` (a full one) at such a page."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]), "TEST_POISON": how}
