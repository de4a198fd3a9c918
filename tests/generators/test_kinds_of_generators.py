"""Kinds of generators come through a seam, those of other distributions as ours do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.generators.generator import Model, Request, Sampling
from pipeline_tasks.generators.kinds import check, kind_of, kinds, libraries, load
from pipeline_tasks.testing.generators import check_generator
from tests.brought import Site, site
from tests.own_generator import KIND_OF_TESTS, install_generator


@pytest.fixture
def brought(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "site") as place:
        install_generator(place)
        yield place


def test_ours_are_known() -> None:
    assert {"endpoint", "completions"} <= {*kinds()}


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_one_of_another_distribution_passes_the_suite(brought: Site, tmp_path: Path, temperature: float) -> None:
    (tmp_path / "words").write_text("ein zwei drei vier")
    model = Model(kind=KIND_OF_TESTS, model=str(tmp_path / "words"))
    check_generator(model, Sampling(temperature, max_tokens=30), bad={"w " * 1000: "too_long", "REFUSE": "refused"})


def test_its_version_is_identity(brought: Site) -> None:
    asks = libraries(lambda model: model.kind)["own_generator"]  # other tests leave theirs in this process
    assert asks(Model(kind=KIND_OF_TESTS))
    assert not asks(Model(kind="endpoint"))


def test_an_unknown_kind_is_refused_with_the_nearest() -> None:
    with pytest.raises(RecipeError, match=r"no package here brings a generator of the kind 'endpont'.*'endpoint'"):
        kind_of(Model(kind="endpont"))


def test_a_kind_needs_a_model(brought: Site) -> None:
    with pytest.raises(RecipeError, match="needs `model`"):
        check(Model(kind=KIND_OF_TESTS))


def test_what_is_no_kind_is_refused(brought: Site, tmp_path: Path) -> None:
    brought.install("nothing", "refinery.generators", {"nothing": "brought_nothing:KIND"}, "KIND = 3")
    with pytest.raises(RecipeError, match="which is a int and no Kind"):
        load(Model(kind="nothing", model=str(tmp_path)), Sampling())


def test_it_writes_by_its_seed(brought: Site, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("ein zwei drei vier")
    generator = load(Model(kind=KIND_OF_TESTS, model=str(tmp_path / "words")), Sampling(1.0, max_tokens=5))
    said = dict(generator.write([Request("", "a b", 1), Request("", "a b", 2), Request("", "a b", 1)]))
    assert said[0] == said[2] != said[1]
