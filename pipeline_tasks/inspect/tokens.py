"""Says how many tokens versions have, or their documents are estimated to have."""

from pipeline_tasks.cards import stage_that, tokenizes
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.store.reading import read_manifest


def tokens_of(root: str, version: Version) -> int:
    """Return the tokens of a version; of a snapshot's those that its documents are estimated to have, 0 if unknown."""
    return version.tokens or estimated_tokens(
        version, tokens_per_document(root, version.recipe)
    )  # the rate reads builds


def estimated_tokens(version: Version, per_document: float) -> int:
    """Return the tokens of a version, or those that its documents have at this rate."""
    return version.tokens or round(version.documents * per_document)


def tokens_per_document(root: str, recipe: str) -> float:
    """Return the tokens of a recipe's document on average, in the newest build of its versions; 0 if there is none."""
    for build in version_log.built_versions(root):
        composed = read_manifest(root, build.manifests[COMPOSE]).params["versions"]
        stage = stage_that(tokenizes, build.manifests)
        if recipe in {part["recipe"] for part in composed} and stage:
            tokenized = read_manifest(root, build.manifests[stage])
            return tokenized.tokens / tokenized.rows if tokenized.rows else 0.0
    return 0.0
