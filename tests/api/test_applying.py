"""Stages and filters over rows that people have: what the product does with the same rows, and every row once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipeline_tasks import api
from pipeline_tasks.cards import stage_card, stage_names
from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.schema import DOCUMENT, LOCATOR, PAGE, RECORD, VERDICT
from tests.chain import Chain, How, refined

STORY = "The harbor lay still, and the boats of the village came back with what the night had given to them. "
RAIN = "Rain fell all day on the fields behind the mill, and nobody went out to the market. "
TEXTS = [(STORY * 6).strip(), (RAIN * 6).strip(), (STORY * 6).strip(), None]
URLS = [f"https://example.org/{name}" for name in "abcd"]

NEED_MORE = {"decontaminate", "embed", "rephrase", "topics"}
"""Stages with files that no default has."""


def texts(**more: Any) -> pa.Table:
    """Three documents, two of which are equal, and a row without text."""
    return pa.table({"text": TEXTS, "url": URLS, **more})


def urls(table: pa.Table) -> list[str]:
    return sorted(table.column("url").to_pylist())


# --- The rows of the product ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """A day of the demo by the recipe `web`."""
    folder = tmp_path_factory.mktemp("applied")
    write_crawl(folder / "crawl", scale=0.1)
    return refined(str(folder / "root"), str(folder / "crawl" / "2026-11-19"))


OF_DOCUMENTS = [step.stage for step in load_recipe("web").steps if "payload" not in stage_card(step.stage).reads.names]
"""Stages whose rows are in the root: pages are read from landed files."""


@pytest.mark.parametrize("stage", OF_DOCUMENTS)
def test_a_stage_does_with_rows_what_it_does_in_a_run(chain: Chain, stage: str) -> None:
    """The rows that the stage before left, as a table, give those that the stage left, byte for byte."""
    before = chain.stages()[chain.stages().index(stage) - 1]
    kept, rejected = api.apply(stage, table_of(chain, before), **load_recipe("web").step(stage).params)
    assert by_place(kept) == by_place(table_of(chain, stage))
    others = [table_of(chain, stage, part) for part in ("rejects", "quarantine")]
    assert by_place(rejected) == {place: row for each in others for place, row in by_place(each).items()}
    assert kept.num_rows + rejected.num_rows == chain.manifest(stage).rows_in > 0


def table_of(chain: Chain, stage: str, part: str = "shards") -> pa.Table:
    """The rows that a stage kept or rejected; a table without columns if there are none."""
    rows = list(api.read_shards(chain.root, getattr(chain.manifest(stage), part)))
    return pa.Table.from_batches(rows) if rows else pa.table({})


def by_place(table: pa.Table) -> dict[tuple[str, int], dict[str, Any]]:
    rows = table.to_pylist()
    places = {(row["file"], row["offset"]): row for row in rows}
    assert len(places) == len(rows)
    return places


def test_rows_of_a_table_are_as_a_landing_makes_them(tmp_path: Path) -> None:
    """Identity, place, date and digest of each row, by other names of fields, too."""
    day = tmp_path / "2026-11-20"
    day.mkdir()
    rows = pa.table(
        {
            "content": [text or "no text" for text in TEXTS],
            "id": list("abcd"),
            "url": URLS,
            "timestamp": ["2024-05-01"] * 4,
        }
    )
    pq.write_table(rows, day / "rows.parquet")
    recipe = tmp_path / "plain.yaml"
    recipe.write_text("stages:\n  ingest: {}\n  extract: {min_chars: 0}\n  dedup_exact: {}\n")
    landed = refined(str(tmp_path / "root"), str(day), How(recipe=str(recipe)))
    kept, rejected = api.apply("dedup_exact", day)
    assert kept.num_rows == 3
    columns = [name for name in DOCUMENT.names if name not in ("snapshot", "length")]
    assert rows_of(kept, columns) == rows_of(table_of(landed, "dedup_exact"), columns)
    assert rejected.column("reason").to_pylist() == ["dedup_exact:duplicate"]


def rows_of(table: pa.Table, columns: list[str]) -> list[dict[str, Any]]:
    return sorted(table.select(columns).to_pylist(), key=lambda row: row["offset"])


# --- Every row once ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [name for name in stage_names() if name not in NEED_MORE])
def test_every_row_is_kept_or_rejected_or_a_missing_column_is_named(stage: str) -> None:
    """Whatever stages there are: they take texts with addresses, or say which column the rows lack."""
    rows = texts(language=["en"] * 4, language_score=[0.9] * 4)
    lacking = [
        name
        for name in stage_card(stage).reads.names
        if name not in (*RECORD.names, *PAGE.names, "id", "chars", "title")
    ]
    if lacking := [name for name in lacking if name not in rows.schema.names]:
        with pytest.raises(api.RecipeError, match=repr(lacking[0])):
            api.apply(stage, rows)
        return
    kept, rejected = api.apply(stage, rows)
    record = "offset" if "url" not in kept.schema.names else "url"
    assert kept.num_rows + rejected.num_rows == 4
    assert len({*kept.column(record).to_pylist(), *rejected.column(record).to_pylist()}) == 4
    assert {*VERDICT.names} <= {*rejected.schema.names}
    assert rejected.column("reason").null_count == 0


def test_a_stage_that_follows_another_takes_equal_texts() -> None:
    kept, rejected = api.apply("dedup_minhash", texts())
    assert urls(kept) == URLS[:2]
    reasons = dict(zip(rejected.column("url").to_pylist(), rejected.column("reason").to_pylist(), strict=True))
    assert reasons == {URLS[2]: "dedup_exact:duplicate", URLS[3]: "error:no_text"}


def test_near_duplicates_are_found_with_their_evidence() -> None:
    changed = (STORY * 6).replace("village", "town", 1)
    kept, rejected = api.apply("dedup_minhash", pa.table({"text": [STORY * 6, changed]}), threshold=0.5)
    assert (kept.num_rows, rejected.num_rows) == (1, 1)
    assert rejected.column("reason").to_pylist() == ["dedup_minhash:near_duplicate"]
    assert "winner" in rejected.column("evidence")[0].as_py()


@pytest.mark.parametrize("stage", ["dedup_exact", "filter_language"])
def test_nothing_is_kept_of_nothing_in_all_columns(stage: str) -> None:
    kept, rejected = api.apply(stage, texts(n=[1, 2, 3, 4]).slice(0, 0))
    assert (kept.num_rows, rejected.num_rows) == (0, 0)
    assert kept.schema.names == api.apply(stage, texts(n=[1, 2, 3, 4])).kept.schema.names
    assert {*DOCUMENT.names, "n", *VERDICT.names} <= {*rejected.schema.names}


# --- What rows may be -------------------------------------------------------------------------------------------


class Hub:
    """Rows as a dataset of Hugging Face has them: a table, and which rows of it are selected."""

    def __init__(self, table: pa.Table, rows: list[int], kind: str = "") -> None:
        self.table, self.rows, self.kind = table, rows, kind

    def with_format(self, type: str) -> Self:  # noqa: A002 -- its name there
        return self.__class__(self.table, self.rows, type)

    def iter(self, batch_size: int) -> Iterator[pa.Table]:
        assert (self.kind, batch_size > 0) == ("arrow", True)
        for row in self.rows:
            yield self.table.slice(row, 1)


def written(rows: pa.Table, folder: Path) -> Path:
    (folder / "deep").mkdir()
    pq.write_table(rows.slice(0, 1), folder / "a.parquet")
    pq.write_table(rows.slice(1), folder / "deep" / "b.parquet", row_group_size=1)
    return folder


@pytest.mark.parametrize("form", ["table", "reader", "batch", "stream", "hub", "folder", "file", "name"])
def test_rows_come_in_any_form_of_arrow(form: str, tmp_path: Path) -> None:
    table = texts(number=[1, 2, 3, 4])
    pq.write_table(table, tmp_path / "rows.parquet")
    forms: dict[str, Any] = {
        "table": lambda: table,
        "reader": lambda: table.to_reader(max_chunksize=1),
        "batch": lambda: table.to_batches()[0],
        "stream": table.to_pandas,
        "hub": lambda: Hub(table, [0, 1, 2, 3]),
        "folder": lambda: written(table, (tmp_path / "folder")),
        "file": lambda: tmp_path / "rows.parquet",
        "name": lambda: str(tmp_path / "rows.parquet"),
    }
    (tmp_path / "folder").mkdir()
    kept, rejected = api.apply("dedup_exact", forms[form]())
    assert sorted(kept.column("number").to_pylist()) == [1, 2]
    assert sorted(rejected.column("number").to_pylist()) == [3, 4]
    assert not kept.schema.metadata


def test_of_a_dataset_the_rows_are_taken_that_it_selects() -> None:
    kept, rejected = api.apply("dedup_exact", Hub(texts(), [2, 1]))
    assert urls(kept) == URLS[1:3]
    assert rejected.num_rows == 0


def test_columns_are_read_in_other_types_and_others_stay() -> None:
    column = pa.array(TEXTS, pa.string()).dictionary_encode()
    table = pa.table({"text": column, "n": pa.array([1, 2, 3, 4], pa.int8()), "tags": [["a"], [], None, ["b"]]})
    kept, _ = api.apply("dedup_exact", table)
    assert kept.schema.field("text").type == pa.large_string()
    assert kept.schema.field("n").type == pa.int8()
    assert {row["n"]: row["tags"] for row in kept.to_pylist()} == {1: ["a"], 2: []}


def test_columns_that_follow_from_a_row_are_computed() -> None:
    table = pa.table(
        {"text": TEXTS[:2], "id": [7, None], "chars": [1.5, None], "length": ["a", "b"], "kind": ["x", "y"]}
    )
    kept, _ = api.apply("filter_url", table)
    assert kept.column("chars").to_pylist() == [len(text or "") for text in TEXTS[:2]]
    assert kept.column("record_id").to_pylist() == ["7", "rows:1"]
    assert kept.column("kind").to_pylist() == ["x", "y"], "documents have no such column"
    pages, rejected = api.apply("ingest", table.append_column("error", [["http_header"] * 2]))
    assert (pages.num_rows, rejected.num_rows) == (2, 0)
    assert pages.column("kind").to_pylist() == ["row", "row"]


def test_a_column_that_the_stage_writes_is_the_stage_s() -> None:
    table = pa.table({"text": TEXTS[:2], "language": ["xx", None], "language_score": [7, 8]})
    kept, _ = api.apply("filter_language", table)
    assert kept.column("language").to_pylist() == ["en", "en"]
    assert all(0 < score <= 1 for score in kept.column("language_score").to_pylist())


def test_what_a_stage_kept_is_rows_for_the_next() -> None:
    kept, _ = api.apply("filter_language", texts(id=list("abcd")))
    again, rejected = api.apply("filter_quality", kept, profiles=["fineweb"])
    assert again.num_rows + rejected.num_rows == kept.num_rows
    assert set(LOCATOR.names) <= set(again.schema.names)
    assert {*again.column("record_id").to_pylist(), *rejected.column("record_id").to_pylist()} == set("abc")


def test_pages_are_extracted() -> None:
    paragraphs = "".join(f"<p>{text}</p>" for text in TEXTS if text)
    html = f"<html><head><title>Harbors</title></head><body><h1>Harbors</h1>{paragraphs}</body></html>"
    kept, _ = api.apply("extract", pa.table({"payload": [html], "url": URLS[:1]}))
    assert kept.column("title").to_pylist() == ["Harbors"]
    assert STORY.strip() in kept.column("text")[0].as_py()


# --- What is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "rows", "named"),
    [
        ("filter_quality", texts(), "'language'.*apply filter_language"),
        ("dedup_exact", pa.table({"body": ["a"]}), "looked for text, content.*body"),
        ("dedup_exact", texts(reason=["a"] * 4), "'reason'.*drop or rename"),
        ("dedup_exact", texts(title=[["a"]] * 4), "'title' is list"),
        ("dedup_exact", pa.table({"text": [1]}), "'text' is int64"),
        ("dedup_exact", pa.table([["a"], ["b"]], ["text", "text"]), "'text'.*twice"),
        ("dedup_exact", __file__, "test_applying.py is no Parquet"),
        ("dedup_exact", 7, "rows are a int"),
        ("dedup_exact", "no/such/folder", "no/such/folder"),
        ("dedup_exakt", texts(), "dedup_exakt"),
    ],
)
def test_what_cannot_be_applied_is_said(stage: str, rows: Any, named: str) -> None:
    with pytest.raises(api.RecipeError, match=f"(?s){named}"):
        api.apply(stage, rows)


def test_a_param_that_a_stage_has_not_is_refused() -> None:
    with pytest.raises(api.RecipeError, match="treshold"):
        api.apply("dedup_minhash", texts(), treshold=0.7)


def test_files_with_other_columns_than_the_first_are_refused(tmp_path: Path) -> None:
    pq.write_table(texts(), tmp_path / "a.parquet")
    pq.write_table(texts().drop_columns(["url"]).append_column("n", [[1] * 4]), tmp_path / "b.parquet")
    with pytest.raises(api.RecipeError, match="other columns"):
        api.apply("filter_url", tmp_path)


# --- Filters ----------------------------------------------------------------------------------------------------


def test_a_filter_judges_by_its_limits() -> None:
    short, long = api.filter("gopher_quality", texts()), api.filter("gopher_quality", texts(), min_doc_words=5000)
    assert urls(short.kept) == URLS[:3]
    assert short.kept.schema.field("signals_gopher_quality")
    assert long.kept.num_rows == 0
    reasons = pc.value_counts(long.rejected.column("reason")).to_pylist()
    assert {each["values"] for each in reasons} == {"gopher_quality:short_doc", "error:no_text"}


def test_a_filter_takes_params_of_the_stage_that_judges() -> None:
    page = f"{STORY * 3}\nAll rights reserved by cookie policy\n{STORY * 3}"
    rows = pa.table({"text": [page]})
    as_it_came, edited = api.filter("c4", rows), api.filter("c4", rows, edit=True)
    assert as_it_came.kept.column("text").to_pylist() == [page]
    assert "cookie policy" not in edited.kept.column("text")[0].as_py()


@pytest.mark.parametrize(("profile", "params"), [("gofer", {}), ("gofer", {"a": 1}), ("c4", {"min_word": 1})])
def test_a_filter_or_limit_that_there_is_not_is_refused(profile: str, params: dict[str, Any]) -> None:
    with pytest.raises(api.RecipeError, match=profile if profile == "gofer" else "min_word"):
        api.filter(profile, texts(), **params)
