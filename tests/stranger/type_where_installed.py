"""A type of files from outside is known by its bytes, read in the sandbox, written by pages, and identity."""

import pyarrow as pa
import pytest

from pipeline_tasks.cards import stage_card
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.schema import PAGE, RECORD
from pipeline_tasks.stages import extract, ingest

BODY = b"%REGISTER\nThe harbor\n\nA ship came in.\nIt left again.\n\n\n\nNobody saw it after that."


def judged(body: bytes, types: tuple[str, ...]) -> dict[str, object]:
    record = {"source": "", "kind": "response", "status": 200, "content_type": "text/plain", "payload": body}
    pages = ingest.select_pages(
        iter(pa.Table.from_pylist([record], RECORD).to_batches()), params=ingest.Params(types=types)
    )
    [page] = pa.Table.from_batches(pages).to_pylist()
    return page


def read(body: bytes) -> dict[str, object]:
    page = {"source": "", "kind": "response", "payload": body, "type": judged(body, ("register",))["type"]}
    params = extract.Params(min_chars=1, types=("register",))
    batches = extract.extract_pages(iter(pa.Table.from_pylist([page], PAGE).to_batches()), params=params)
    [document] = pa.Table.from_batches(batches).to_pylist()
    return document


def test_bytes_tell_it_whatever_the_label_says() -> None:
    assert (judged(BODY, ("register",))["type"], judged(BODY, ("register",))["reason"]) == ("register", None)
    assert judged(BODY, ("html", "text"))["reason"] == "ingest:register"


def test_its_text_is_that_of_its_pages() -> None:
    document = read(BODY)
    assert document["text"] == "A ship came in.\n\nIt left again.\n\nNobody saw it after that."
    assert (document["title"], document["extractor"], document["type"]) == ("The harbor", "register", "register")
    assert (document["pages"], document["unread_pages"], document["reason"]) == (3, [2], None)
    blocks = document["blocks"]
    assert isinstance(blocks, list)
    text = str(document["text"])
    assert [(block["page"], text[block["start"] : block["end"]].strip()) for block in blocks] == [
        (1, "A ship came in."),
        (1, "It left again."),
        (3, "Nobody saw it after that."),
    ]


def test_a_file_that_its_reader_refuses_is_rejected_by_the_reason() -> None:
    assert read(b"%REGISTER\n")["reason"] == "extract:damaged"


def test_a_recipe_hands_its_types_on_and_its_distribution_is_identity() -> None:
    recipe = parse_recipe({"stages": {"ingest": {"types": ["html", "register"]}, "extract": {}}}, "mine.yaml")
    assert [tuple(step.params["types"]) for step in recipe.steps] == [("html", "register")] * 2
    card = stage_card("extract")
    assert "refinery-stranger" in card.libraries_of(extract.Params(types=("register",)))
    assert "refinery-stranger" not in card.libraries_of(extract.Params())


def test_a_misspelt_type_is_told_the_nearest() -> None:
    with pytest.raises(RecipeError, match="did you mean 'register'"):
        parse_recipe({"stages": {"ingest": {"types": ["registers"]}, "extract": {}}}, "mine.yaml")
