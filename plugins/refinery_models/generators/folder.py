"""Says of a folder of the Hugging Face hub what every machine can tell: what it is, its name, and that it is whole."""

import json
from pathlib import Path
from typing import Any

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.generators.generator import Model
from pipeline_tasks.scorers.model_card import license_of
from pipeline_tasks.store.files import digest_of_named

CONFIG = "config.json"

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json")
"""Files by one of which a folder has a tokenizer."""


def check(model: Model) -> None:
    """Raise RecipeError unless a folder has a causal model, its weights as safetensors, and a tokenizer."""
    folder = Path(model.model)
    lacking = "config.json" if not (folder / CONFIG).is_file() else ""
    lacking = lacking or ("" if any(folder.glob("*.safetensors")) else "*.safetensors")
    lacking = lacking or ("" if any((folder / name).is_file() for name in TOKENIZERS) else "tokenizer.json")
    if lacking:
        message = f"{folder} is no folder of a model that writes: it has no {lacking}; name the folder that has"
        raise RecipeError(message)
    said = config_of(folder).get("architectures") or [""]
    if "CausalLM" not in str(said) and "LMHead" not in str(said):
        message = (
            f"{folder} has a {said[0] or 'network of no kind'}, which writes no text; name a causal language model"
        )
        raise RecipeError(message)


def config_of(folder: Path) -> dict[str, Any]:
    """Return the config of a folder; RecipeError for what is none."""
    try:
        read = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError) as error:
        message = f"{folder / CONFIG} cannot be read ({error}); restore the model's folder"
        raise RecipeError(message) from error
    if not isinstance(read, dict):
        message = f"{folder / CONFIG} is no object of JSON; restore the model's folder"
        raise RecipeError(message)
    return read


def name_of(model: Model) -> str:
    """Return the name of a model in a folder, and its digest: as the recipe or its config says, wherever it lies."""
    config = config_of(Path(model.model))
    said = model.name or Path(str(config.get("_name_or_path", ""))).name or str(config.get("model_type", "model"))
    return f"{said}@{digest_of_named(model.model)[:16]}"


def license_in(model: Model) -> str:
    """Return the license that the card in a folder names, else that of the recipe."""
    return license_of(Path(model.model)) or model.license
