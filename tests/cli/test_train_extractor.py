"""`refinery model extractor` trains on marked pages, holds sites out, and gives the same bytes again."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from refinery_models.extractor.pages import read_pages
from refinery_models.extractor.training import MAIN, chosen, fold_of, packed

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.blocks.coupling import RELATIONS
from pipeline_tasks.text.blocks.model import dump_model, load_model, score_blocks

NOUNS = [
    "river",
    "bridge",
    "harbor",
    "valley",
    "railway",
    "orchard",
    "market",
    "library",
    "quarry",
    "mill",
    "lantern",
    "archive",
]
VERBS = ["crosses", "follows", "feeds", "borders", "predates", "outlasts", "supplies", "shelters"]


def sentence(draw: np.random.Generator) -> str:
    a, b, c = draw.choice(NOUNS, 3)
    return f"The old {a} {draw.choice(VERBS)} the {b} near the {c}, which was built in {draw.integers(1700, 1990)}."


def marked_page(number: int) -> dict[str, Any]:
    draw = np.random.default_rng(number)
    title = f"The {draw.choice(NOUNS)} of {draw.choice(NOUNS)} {number}"
    paragraphs = [" ".join(sentence(draw) for _ in range(draw.integers(2, 5))) for _ in range(draw.integers(2, 6))]
    links = "".join(f"<li><a href='/{noun}'>{noun} {number}</a></li>" for noun in draw.choice(NOUNS, 6))
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    frame = ("article", "div", "main")[number % 3]
    html = (
        f"<html><head><title>{title} | Gazette</title></head><body><header><ul>{links}</ul></header>"
        f"<{frame}><h1>{title}</h1>{body}</{frame}><footer><p>Imprint {number}</p><ul>{links}</ul></footer></body></html>"
    )
    return {
        "id": f"page-{number:02}",
        "url": f"https://www.site-{number % 17}.example/{number}",
        "html": html,
        "main_content": "\n".join([title, *paragraphs]),
        "page_type": "article" if number % 2 else "report",
        "language": "en",
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "pages.jsonl"
    path.write_text("\n".join(json.dumps(marked_page(number)) for number in range(50)))
    return path


SMALL = ["--trees", "12", "--leaves", "6"]


@pytest.fixture(scope="module")
def trained(pages: Path) -> Path:
    output = pages.parent / "a.model"
    assert main(["model", "extractor", str(pages), "--output", str(output), "--folds", "2", *SMALL]) == 0
    return output


def test_the_same_pages_give_the_same_bytes(pages: Path, trained: Path, tmp_path: Path) -> None:
    """Parquet with the markup as bytes, in another order, and without the report: only the card may differ."""
    rows = [{**marked_page(number), "html": marked_page(number)["html"].encode()} for number in reversed(range(50))]
    other, output = tmp_path / "pages.parquet", tmp_path / "b.model"
    pa.parquet.write_table(pa.Table.from_pylist(rows), other)
    assert main(["model", "extractor", str(other), "--output", str(output), "--folds", "0", *SMALL]) == 0
    one, two = load_model(str(trained)), load_model(str(output))
    assert one.card["trained_on"] == two.card["trained_on"]
    assert one.digest != two.digest
    assert (
        dump_model(one).partition(b"\n{")[2].partition(b"\n")[2]
        == dump_model(two).partition(b"\n{")[2].partition(b"\n")[2]
    )
    again = tmp_path / "c.model"
    assert main(["model", "extractor", str(pages), "--output", str(again), "--folds", "2", *SMALL]) == 0
    assert again.read_bytes() == trained.read_bytes()


def test_the_model_finds_the_text_of_pages(pages: Path, trained: Path) -> None:
    model = load_model(str(trained))
    fits = [page.fit_of(chosen(page, model))[0] for page in read_pages([str(pages)])[0]]
    assert min(fits) > 0.95
    report = model.card["report"]
    assert report["held_out"]["pages"] == 50
    assert report["held_out"]["f1"] > 0.95
    assert set(report["by_type"]) == {"article", "report"}


def test_pages_of_a_site_are_in_one_fold(pages: Path) -> None:
    read = read_pages([str(pages)])[0]
    assert {page.site for page in read} == {f"site-{number}.example" for number in range(17)}
    assert {fold_of(page.site, 3) for page in read} == {0, 1, 2}


def test_scores_are_those_of_scikit_learn(pages: Path) -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    read = read_pages([str(pages)])[0]
    features = np.concatenate([page.features for page in read])
    targets = np.concatenate([page.labels >= MAIN for page in read])
    machine = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=12, early_stopping=False, random_state=0)
    machine.fit(features, targets)
    trees = [tree.nodes for (tree,) in machine._predictors]
    model = packed(trees, float(machine._baseline_prediction[0, 0]), np.zeros(4 * RELATIONS, np.int16), {})
    other = np.random.default_rng(0).integers(0, 256, (5_000, features.shape[1])).astype(np.uint8)
    for rows in (features, other):
        expected = machine.decision_function(rows) * 4096
        assert np.abs(score_blocks(rows, model) - expected).max() <= len(trees) / 2 + 1


def test_an_existing_model_is_not_replaced(pages: Path, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = trained.read_bytes()
    assert main(["model", "extractor", str(pages), "--output", str(trained)]) == RecipeError.exit_code
    assert "exists; name a new file" in capsys.readouterr().err
    assert trained.read_bytes() == before


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"id": "a", "url": "u", "html": "<p>a"}, ":1 has no main_content"),
        ({"id": "a", "url": "u", "html": "<p>a", "main_content": "a", "weight": "x"}, ":1: weight 'x'"),
        ({"id": "a", "url": "u", "html": "<p>a b c", "main_content": "a b c"}, "nothing can be learned"),
    ],
)
def test_pages_that_teach_nothing_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], record: dict[str, Any], said: str
) -> None:
    path, output = tmp_path / "pages.jsonl", tmp_path / "x.model"
    path.write_text(json.dumps(record))
    assert main(["model", "extractor", str(path), "--output", str(output), "--folds", "0"]) == RecipeError.exit_code
    assert said in capsys.readouterr().err
    assert not output.exists()


def test_an_id_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    path.write_text("\n".join(json.dumps(marked_page(1)) for _ in range(2)))
    with pytest.raises(RecipeError, match="page-01 occurs twice"):
        read_pages([str(path)])


def test_without_scikit_learn_the_command_says_what_to_install(
    pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pipeline_tasks import libraries

    libraries._version.cache_clear()
    monkeypatch.setattr(sys, "path", [str(Path(libraries.__file__).parents[1])])  # distributions are found by it
    code = main(["model", "extractor", str(pages), "--output", str(tmp_path / "x.model")])
    libraries._version.cache_clear()
    assert code == RecipeError.exit_code
    assert "pip install '.[map]'" in capsys.readouterr().err
