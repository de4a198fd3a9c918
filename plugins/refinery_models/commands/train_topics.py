"""Train topics on a sample of texts, for the stage `topics`; topics that were there before keep their numbers."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline_tasks.cli.whole_file import write_whole
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_json, number, print_result

TEXTS, TOPICS = 20_000, 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the texts, the embedding model, how many topics there are to be, and those of before."""
    what = "files of records (.jsonl, .parquet) with `text`; or ROOT, ROOT@SNAPSHOT"
    parser.add_argument("--sample", nargs="+", required=True, metavar="TEXTS", help=what)
    parser.add_argument("--embeddings", required=True, metavar="FOLDER", help="the model of the stage `embed`")
    parser.add_argument(
        "--to", "--output", dest="output", required=True, metavar="FILE", help="file to write; it must not exist"
    )
    parser.add_argument("--topics", type=number(int, 2), default=TOPICS, metavar="N", help=f"most topics ({TOPICS})")
    parser.add_argument(
        "--base", default="", metavar="OLD", help="topics of before: one that is still there keeps its number"
    )
    parser.add_argument("--length", type=number(int, 16), default=256, metavar="N", help="as `embed.length` (256)")
    parser.add_argument("--windows", type=number(int, 0), default=8, metavar="N", help="as `embed.windows` (8)")
    parser.add_argument("--texts", type=number(int, 20), default=TEXTS, metavar="N", help=f"most texts ({TEXTS:,})")
    parser.add_argument("--seed", type=number(int, 0), default=1, metavar="N", help="the seed they are drawn by (1)")
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Embed the sample, train and write the topics; print them, and how well they describe the sample."""
    import numpy as np

    from pipeline_tasks.scorers.embedder import EmbeddingModel, load_embedder
    from pipeline_tasks.scorers.topics import dump_topics, read_topics
    from pipeline_tasks.stage import FilePath
    from pipeline_tasks.text.near.vectors import packed, unpacked
    from refinery_models.scorers.texts import read_texts
    from refinery_models.topics import facts_of, train_topics

    output = Path(options.output)
    if output.exists():
        message = f"--to {output} exists; name a new one, as recipes may name this one"
        raise RecipeError(message)
    base = read_topics(options.base) if options.base else None
    table, inputs = read_texts(options.sample, options.texts, options.seed)
    model = EmbeddingModel(FilePath(options.embeddings), length=options.length, windows=options.windows)
    embedder = load_embedder(model)
    texts = table.column("text").to_pylist()
    embedded = embedder.embed(texts).vectors
    known = np.isfinite(embedded).all(axis=1)
    vectors = unpacked(packed(embedded[known]))
    if len(vectors) < options.topics:
        message = f"{len(vectors)} texts have a vector, and {options.topics} topics are to be found; name more texts"
        raise RecipeError(message)
    kept = [texts[row] for row in np.flatnonzero(known).tolist()]
    topics = train_topics(vectors, kept, embedder.name, options.topics, options.seed, base)
    write_whole(output, dump_topics(topics))
    facts = {**facts_of(topics, vectors, base), "inputs": inputs, "model": topics.model}
    named = [{"topic": topic.key, "texts": topic.texts, "terms": list(topic.terms)} for topic in topics.topics]
    print_result(options, {**facts, "output": str(output), "named": named}, lines(facts, named, str(output)))
    return 0


def lines(facts: Mapping[str, Any], named: list[dict[str, Any]], output: str) -> Iterator[str]:
    """Yield what was trained as people read it."""
    yield f"{output}: {facts['topics']} topics of {facts['texts']:,} texts, by vectors of {facts['model']}"
    yield (
        f"cosine of a text and its topic: median {facts['cosine_p50']:.2f}, 5 % below {facts['cosine_p05']:.2f}; "
        f"the largest topic has {facts['largest_share']:.1%}"
    )
    if "agreement" in facts:
        yield f"{facts['kept_topics']} topics kept their numbers; {facts['agreement']:.1%} of the texts are in the same"
    for topic in named:
        yield f"  {topic['topic']}  {topic['texts']:>7,}  {' '.join(topic['terms'])}"
