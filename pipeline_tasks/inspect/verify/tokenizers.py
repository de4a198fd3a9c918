"""Checks the tokenizer that is pinned to a dataset, and that every version has it."""

from collections.abc import Iterable, Sequence

from pipeline_tasks.cards import stage_that, tokenizes
from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.objects import digest_of
from pipeline_tasks.inspect.verify.published import tokenizer_file
from pipeline_tasks.publish.datasets.tokenizer_pin import pin_path, read_pin_alone
from pipeline_tasks.publish.logs.version_log import Version


def check_pin(root: str, recipe: str, versions: Iterable[Version], findings: Findings) -> None:
    """Check the pin of a dataset, its definition, and its versions; one without tokens has no pin."""
    tokenized = [version for version in versions if stage_that(tokenizes, version.manifests)]
    where = f"{root}/{pin_path(recipe)}"
    again = _built_again(root, recipe, tokenized)
    heal = f"restore it from a backup; without one, remove it and {again}"
    for digest, version in {version.tokenizer: version for version in tokenized}.items():
        name = tokenizer_file(version)
        definition = f"{root}/tokenizers/{recipe}/{name.replace('tokenizer', digest, 1)}"
        _check_definition(definition, digest, f"copy {root}/{version.prefix}/{name} there", findings)
    with findings.guarded(where, heal):
        pin = read_pin_alone(root, recipe)
        if pin is None:
            if tokenized:
                findings.add(Problem(where, "is missing", heal=f"restore it from a backup; without one, {again}"))
            return
        findings.count("tokenizer pins")
        if not tokenized:
            definition = f"{root}/{pin.path}"
            _check_definition(definition, pin.digest, f"remove {where} and {definition}, and run again", findings)
        for version in tokenized:
            if version.tokenizer != pin.digest:
                problem = f"is not the tokenizer of version {version.number}"
                findings.add(Problem(where, problem, version.tokenizer, pin.digest, heal))


def _built_again(root: str, recipe: str, tokenized: Sequence[Version]) -> str:
    """Return how a build pins the tokenizer anew; a recipe that names its own is compared with the published one."""
    again = f"build {recipe} again"
    if not tokenized:
        return again
    version = tokenized[-1]
    return (
        f"{again}: its versions' tokenizer is pinned anew. If the recipe names its tokenizer, let it name "
        f"{root}/{version.prefix}/{tokenizer_file(version)} first"
    )


def _check_definition(where: str, digest: str, heal: str, findings: Findings) -> None:
    """Check the stored definition of a tokenizer."""
    with findings.guarded(where, heal):
        if (actual := digest_of(where)) != digest:
            findings.add(Problem(where, "its bytes were changed", f"SHA-256 {digest}", f"SHA-256 {actual}", heal))
