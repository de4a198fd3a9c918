"""The params of a model that scores texts, and the cards of published ones that fill them in."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pipeline_tasks.binding import require_mapping
from pipeline_tasks.constraints import OMITTED, Note, Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.nearest import near
from pipeline_tasks.shipped import shipped
from pipeline_tasks.stage import NO_FILE, FilePath
from pipeline_tasks.yaml_file import read_yaml

CARDS = shipped("dags") / "recipes" / "scorers"
"""Published classifiers: a file each, whose keys are params of `Classifier`, and `title`, `source`, `repository`."""

ABOUT = ("title", "source", "repository")
"""Keys of a card that say what it is; all others are params."""

OF_CHECK = ("report", "accepted", "calibrated")
"""Params about the check of a model, which no card has."""

Pool = Literal["mean", "max", "min"]
Numerics = Literal["fp32", "tf32", "bf16"]

Output = Annotated[float, Range(-1e6, 1e6)]
"""What a network of one output says."""

DEFAULTS: Mapping[str, Any] = {
    "label": "",
    "lowest": 0.0,
    "highest": 1.0,
    "length": 512,
    "windows": 8,
    "pool": "mean",
    "numerics": "fp32",
    "minimum": 0.0,
}


@dataclass(frozen=True, slots=True)
class Classifier:
    """A model that scores texts from 0 to 1; what its file or folder is decides how it is read.

    `model` is a fastText model (`.bin`, `.ftz`), or a folder: a Hugging Face sequence classifier (`config.json`,
    `model.safetensors`, `tokenizer.json`; needs torch and transformers), the same exported to ONNX (`model.onnx`), or
    static embeddings with a linear head (`head.safetensors`). `hf://owner/name@commit` names a folder of the hub.
    `card` is the name of a published classifier, whose params hold where these are left out.

    `label` names the label whose probability is the score. A model of one output without labels is a regression:
    `lowest` to `highest` become 0 to 1. So does what a causal language model says: the mean log2 of the probability of
    a token, which is negative. `length` is the tokens of a window, and `windows` the most of a text, spread
    evenly from its first to its last (0: all); `pool` makes one score of them, `mean` by their tokens. `minimum` is the
    score below which a document is rejected, unless `minima` has another. `numerics` is what a GPU computes with.

    `report` is the report of `refinery model check`, which has to be that of this model with these params. A model
    that its check refuses may not decide, unless `accepted` says why it may: the manifest records it, and the gate
    warns. `calibrated` decides by what the report found that scores mean, by language where it could tell, and not by
    the scores: bounds are then of that scale, and a card's does not hold. The column `calibrated_<name>` has it.
    """

    model: FilePath = NO_FILE
    card: str | None = None
    label: str | None = None
    lowest: Output | None = None
    highest: Output | None = None
    length: Annotated[int, Range(16, 8192)] | None = None
    windows: Annotated[int, Range(0, 1 << 20)] | None = None
    pool: Pool | None = None
    numerics: Numerics | None = None
    minimum: Annotated[float, Range(0, 1)] | None = None
    report: FilePath = NO_FILE
    accepted: Note = ""
    calibrated: bool = field(default=False, metadata={OMITTED: False})

    def __post_init__(self) -> None:
        """Fill in what is left out, from the card or the defaults; RecipeError without a model, or for a wrong card."""
        card = _params_of(self.card) if self.card else {}
        if self.calibrated:
            card.pop("minimum", None)  # a bound on the scores as they are
        for name, default in DEFAULTS.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, type(default)(card.get(name, default)))
        if not self.model:
            where = f"; its repository is {about(self.card)['repository']}" if self.card else ""
            message = f"a classifier needs `model`: the path of its file or folder, or hf://owner/name@commit{where}"
            raise RecipeError(message)
        if self.calibrated and not self.report:
            message = "`calibrated` needs `report`: the report of `refinery model check`, on a sample with labels"
            raise RecipeError(message)
        if self.lowest >= self.highest:  # type: ignore[operator]  # filled in above
            message = f"lowest is {self.lowest} and highest {self.highest}; the range of a model's output must ascend"
            raise RecipeError(message)


def computing(classifier: Classifier) -> Classifier:
    """Return what of a classifier decides its scores: not its bound, its card's name or its check."""
    return dataclasses.replace(classifier, minimum=0.0, card=None, report=NO_FILE, accepted="", calibrated=False)


def require_label(label: str, known: tuple[str, ...], model: str) -> None:
    """Raise RecipeError unless a model has the label, naming the nearest."""
    if label not in known:
        meant = ", ".join(map(repr, near(label, known, 3)))
        message = f"{model} has no label {label!r}; the nearest are {meant}"
        raise RecipeError(message)


def card_names() -> list[str]:
    """Return the names of the cards of published classifiers."""
    return sorted(path.stem for path in CARDS.glob("*.yaml"))


def about(card: str) -> dict[str, str]:
    """Return the title, the source and the repository of a published classifier."""
    return {name: str(_read(card).get(name, "")) for name in ABOUT}


def _params_of(card: str) -> dict[str, Any]:
    read = {name: value for name, value in _read(card).items() if name not in ABOUT}
    fields = {declared.name for declared in dataclasses.fields(Classifier)} - {"model", "card", *OF_CHECK}
    if unknown := sorted(read.keys() - fields):
        message = f"{CARDS / card}.yaml: unknown key {unknown[0]!r}; known keys are: {', '.join(sorted(fields))}"
        raise RecipeError(message)
    return read


def _read(card: str) -> dict[str, Any]:
    if card not in card_names():
        message = f"no classifier has a card {card!r}; published classifiers are: {', '.join(card_names())}"
        raise RecipeError(message)
    return dict(require_mapping(read_yaml(CARDS / f"{card}.yaml"), card))
