"""Checks the tokenizer that is pinned to a dataset, and that every version has it."""

from collections.abc import Iterable

from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.objects import digest_of
from pipeline_tasks.inspect.verify.published import tokenizer_file
from pipeline_tasks.publish.tokenizer_pin import pin_path, read_pin
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store


def check_pin(root: str, recipe: str, versions: Iterable[Version], findings: Findings) -> None:
    """Check the pin of a recipe, its definition, and the versions that were tokenized; a build has no pin."""
    tokenized = [version for version in versions if version.tokenizer and COMPOSE not in version.manifests]
    where = f"{root}/{pin_path(recipe)}"
    heal = (
        f"restore it from a backup; without one, where recipe {recipe} trains its tokenizer, remove it and run a "
        "snapshot again: the tokenizer of the versions is pinned anew"
    )
    _check_definitions(storage.connect(root), recipe, tokenized, findings)
    with findings.guarded(where, heal):
        pin = read_pin(root, recipe)  # a damaged definition is a problem of its own, named above
        if pin is None:
            if tokenized:
                findings.add(Problem(where, "is missing", heal=_heal_missing(root, recipe, tokenized[-1])))
            return
        findings.count("tokenizer pins")
        for version in tokenized:
            if version.tokenizer != pin.digest:
                problem = f"is not the tokenizer of version {version.number}"
                findings.add(Problem(where, problem, version.tokenizer, pin.digest, heal))


def _heal_missing(root: str, recipe: str, version: Version) -> str:
    return (
        f"restore it from a backup; without one, run a snapshot of recipe {recipe} again: its versions' tokenizer "
        f"is pinned anew. If the recipe names its tokenizer, let it name "
        f"{root}/{version.prefix}/{tokenizer_file(version)} first"
    )


def _check_definitions(store: Store, recipe: str, tokenized: Iterable[Version], findings: Findings) -> None:
    """Check the stored definition of every tokenizer that a version names."""
    for digest, version in {version.tokenizer: version for version in tokenized}.items():
        name = tokenizer_file(version)
        where = f"{store.root}/tokenizers/{recipe}/{name.replace('tokenizer', digest, 1)}"
        heal = f"copy {store.root}/{version.prefix}/{name} there"
        with findings.guarded(where, heal):
            if (actual := digest_of(where)) != digest:
                values = (f"SHA-256 {digest}", f"SHA-256 {actual}")
                findings.add(Problem(where, "its bytes were changed", *values, heal))
