"""Where vLLM is not installed, or has no GPU, the refusal says what writes instead."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.generators.generator import Model, Sampling
from pipeline_tasks.generators.kinds import check, load


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"]}))
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).touch()
    return tmp_path


def test_without_vllm_the_way_out_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    model = Model(kind="vllm", model=str(folder))
    check(model)
    with pytest.raises(RecipeError, match=r"vLLM cannot be loaded here .* \(`kind: endpoint`\)"):
        load(model, Sampling())


@pytest.mark.parametrize("capability", [None, (7, 5)])
def test_without_invariant_kernels_it_writes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int] | None
) -> None:
    torch = ModuleType("torch")
    torch.cuda = SimpleNamespace(is_available=lambda: capability is not None, get_device_capability=lambda: capability)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    with pytest.raises(RecipeError, match=r"compute capability 8\.0 or higher"):
        load(Model(kind="vllm", model=str(folder)), Sampling())


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("config.json", "it has no config.json"),
        ("model.safetensors", r"it has no \*\.safetensors"),
        ("tokenizer.json", "it has no tokenizer.json"),
    ],
)
@pytest.mark.parametrize("kind", ["transformers", "vllm"])
def test_a_folder_that_is_not_whole_is_refused_without_torch(
    folder: Path, kind: str, missing: str, message: str
) -> None:
    (folder / missing).unlink()
    with pytest.raises(RecipeError, match=message):
        check(Model(kind=kind, model=str(folder)))


def test_a_network_that_writes_nothing_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"architectures": ["BertForSequenceClassification"]}))
    with pytest.raises(RecipeError, match="BertForSequenceClassification, which writes no text"):
        check(Model(model=str(folder)))
