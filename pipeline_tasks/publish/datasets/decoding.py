"""Decodes the tokens of a training dataset back to text, with its tokenizer."""

from pipeline_tasks.cards import one_that, tokenizes
from pipeline_tasks.publish.exports.tokenizer import tokenizer_of
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.stages.tokenize.decoding import Decoder, decoder
from pipeline_tasks.store.reading import read_manifest


def decoder_of(root: str, version: Version) -> Decoder:
    """Return a function that turns a version's token ids into text."""
    tokenizer = tokenizer_of(root, read_manifest(root, one_that(tokenizes, version.manifests)))
    return decoder(tokenizer.kind, tokenizer.definition)
