"""Models of SentencePiece: files that end in `.model`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stages.tokenize.params import JSON, MODEL, MOST_ID, PROBE

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

SENTENCEPIECE = "sentencepiece"


def suffix_of(kind: str) -> str:
    """Return how the name of a file ends that has the definition of a tokenizer of this kind."""
    return MODEL if kind == SENTENCEPIECE else JSON


def processor(definition: bytes, path: str = "the pinned tokenizer") -> "SentencePieceProcessor":
    """Return the processor of a model; RecipeError if the bytes are none."""
    import sentencepiece

    try:
        model = sentencepiece.SentencePieceProcessor(model_proto=definition) if definition else None
        if model and 0 < model.get_piece_size() <= MOST_ID + 1:
            model.encode(PROBE)
            pieces(model)  # a damaged one may have pieces that are no text: UnicodeDecodeError, a ValueError
            return model
        problem = "it has no pieces"
    except (RuntimeError, ValueError, OSError, IndexError) as error:
        problem = str(error)[:200]
    message = (
        f"tokenize.tokenizer: {path} is no model of SentencePiece ({problem}); name the tokenizer.model that "
        "spm_train wrote, or the tokenizer.json of the same tokenizer"
    )
    raise RecipeError(message)


def pieces(model: "SentencePieceProcessor") -> Mapping[str, int]:
    """Return the id of every piece."""
    return {model.id_to_piece(number): number for number in range(model.get_piece_size())}


def end_piece(model: "SentencePieceProcessor") -> str:
    """Return the piece that the model calls its end of sentence, "" if it has none."""
    return str(model.id_to_piece(model.eos_id())) if model.eos_id() >= 0 else ""
