"""What `docs/security.md` promises about the code itself."""

import re
from pathlib import Path

PROJECT = Path(__file__).parents[1]

OPEN = re.compile(
    r"\b(yaml\.unsafe_load|yaml\.(?:Full|Unsafe)?Loader|yaml\.CLoader|eval\(|exec\(|os\.system\(|shell=True|trust_remote_code(?!=False\b))"
)


def sources() -> dict[str, str]:
    files = [path for room in ("pipeline_tasks", "plugins", "dags") for path in (PROJECT / room).rglob("*.py")]
    return {str(path.relative_to(PROJECT)): path.read_text() for path in files}


def test_only_engines_pickle() -> None:
    """Spark's tasks and results travel between our own driver and workers; nothing that is stored is unpickled.

    The loader, scorers and generators make torch's tensors of arrays, and load and save nothing by torch: models are tensors alone,
    and so are the states of models that judge recipes.
    """
    imports = re.compile(r"^\s*(?:import|from) +(pickle|cloudpickle|joblib|dill|shelve|marshal)\b", re.MULTILINE)
    engines = {"plugins/refinery_spark/task_batch.py", "pipeline_tasks/engines/sent.py"}  # what workers are sent
    assert {path for path, text in sources().items() if imports.search(text)} <= engines
    torch = {path for path, text in sources().items() if re.search(r"^\s*(?:import|from) +torch\b", text, re.MULTILINE)}
    judges = {f"plugins/refinery_ablate/{name}.py" for name in ("network", "running", "scoring", "training_run")}
    writers = {f"plugins/refinery_models/generators/{name}.py" for name in ("rows", "transformers", "vllm")}
    assert torch <= {"pipeline_tasks/training/batch.py", "plugins/refinery_models/huggingface.py", *judges, *writers}
    for name in ("huggingface", "generators/transformers"):
        networks = sources()[f"plugins/refinery_models/{name}.py"]
        assert networks.count("from_pretrained(") == networks.count("use_safetensors=True") == 1
    assert 'load_format="safetensors"' in sources()["plugins/refinery_models/generators/vllm.py"]
    assert {path for path, text in sources().items() if re.search(r"torch\.(load|save|jit|hub)\b", text)} == set()
    assert {path for path, text in sources().items() if "allow_pickle" in text} == set()


def test_no_text_becomes_code() -> None:
    assert {path: OPEN.findall(text) for path, text in sources().items() if OPEN.search(text)} == {}
