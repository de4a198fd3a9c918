"""A folder of a dataset lands its split train; other splits are named, and asked for by a name."""

import json
import logging
from pathlib import Path

import pytest

from pipeline_tasks.errors import NothingLanded
from pipeline_tasks.flow import work
from pipeline_tasks.flow.attempt import Attempt, Run
from pipeline_tasks.landing.arrival import MISSING, arrival_of
from pipeline_tasks.landing.listing import BESIDE_ARCHIVES, land, left_out_lines, list_snapshot
from pipeline_tasks.landing.splits import other_splits
from pipeline_tasks.service.handle import handle

LINE = b'{"text": "The ferry leaves the harbor every morning before the fog has lifted from the water."}\n'

HUB = (
    "data/train-00000-of-00002.jsonl",
    "data/train-00001-of-00002.jsonl",
    "data/test-00000-of-00001.jsonl",
    "data/validation-00000-of-00001.jsonl",
)
HASHED = "test-00000-of-00001-a09b74b3ef9c3b56.parquet"
MARKS = ("_SUCCESS", "_committed_123", ".part-0.jsonl.crc", ".gitattributes", "README.md")


def folder(place: Path, *names: str) -> str:
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(LINE if name.endswith("jsonl") else b"")
    return str(place)


def files_of(uri: str) -> list[str]:
    return [name for name, _, _ in list_snapshot(uri).files]


def test_train_lands_and_each_other_split_has_a_line(tmp_path: Path) -> None:
    listing = list_snapshot(folder(tmp_path / "hub", *HUB, *MARKS))
    assert [name for name, _, _ in listing.files] == list(HUB[:2])
    assert listing.ignored == ("README.md",)
    lines = [line for line in left_out_lines(listing.skipped) if "split" in line]
    assert [line.partition(";")[0] for line in lines] == [
        "1 file left out: data/test-00000-of-00001.jsonl (of the split test",
        "1 file left out: data/validation-00000-of-00001.jsonl (of the split validation",
    ]


@pytest.mark.parametrize(
    ("names", "left_out"),
    [
        (("train/a.jsonl", "test/a.jsonl", "dev/a.jsonl"), {"test/a.jsonl": "test", "dev/a.jsonl": "validation"}),
        (("train.jsonl", "dev.jsonl", "eval.jsonl"), {"dev.jsonl": "validation", "eval.jsonl": "test"}),
        (
            ("en/c4-train.00000-of-01024.json.gz", "en/c4-validation.00000-of-00008.json.gz"),
            {"en/c4-validation.00000-of-00008.json.gz": "validation"},
        ),
        (("squad_train.jsonl", "squad_test.jsonl"), {"squad_test.jsonl": "test"}),
        (("train-0.jsonl", "extra.jsonl", "val_1.jsonl"), {"val_1.jsonl": "validation"}),
        (("blood-test.jsonl", "test_drive.jsonl", "tests.jsonl", "latest.jsonl", "development/a.jsonl"), {}),
        (
            ("dev-blog.jsonl", "dev.to.jsonl", "test-results.jsonl", "val-de-loire_2.jsonl", "dev-3d.jsonl", "a.jsonl"),
            {},
        ),
        (("train-blog.jsonl", "dev-blog.jsonl"), {"dev-blog.jsonl": "validation"}),
        (("a.jsonl", "test-part-0.jsonl.gz", "eval1.csv"), {"test-part-0.jsonl.gz": "test", "eval1.csv": "test"}),
        (("data/train-0.parquet", f"data/{HASHED}"), {f"data/{HASHED}": "test"}),
        (("part-0.parquet", "b/part-0.parquet", "unsupervised-00000-of-00001.parquet"), {}),
    ],
)
def test_a_split_is_a_folder_a_name_but_for_its_numbers_or_the_word_where_another_has_train(
    names: tuple[str, ...], left_out: dict[str, str]
) -> None:
    assert other_splits(names) == left_out


def test_a_folder_of_another_split_alone_is_refused_with_the_way_out(tmp_path: Path) -> None:
    uri = folder(tmp_path / "hub", "test-0.jsonl", "test-1.jsonl", "dev-0.jsonl")
    with pytest.raises(NothingLanded, match=r"3 tables are of the split test and validation; .*snapshot\.json"):
        list_snapshot(uri)
    assert arrival_of(uri).state == MISSING, "train may come yet"


def test_another_split_is_read_where_it_is_named(tmp_path: Path) -> None:
    uri = folder(tmp_path / "hub", *HUB, "test/a.jsonl", "test/test-1.jsonl", "test/dev-1.jsonl")
    assert files_of(f"{uri}/{HUB[2]}") == ["test-00000-of-00001.jsonl"], "one file"
    assert files_of(f"{uri}/test") == ["a.jsonl", "test-1.jsonl"], "a folder of the split"
    listed = [{"path": name, "bytes": len(LINE), "sha256": ""} for name in HUB[1:3]]
    (tmp_path / "hub" / "snapshot.json").write_text(json.dumps({"snapshot": "a", "files": listed}))
    assert sorted(files_of(uri)) == sorted(HUB[1:3]), "files of a list"


def test_archives_have_no_splits(tmp_path: Path) -> None:
    assert files_of(folder(tmp_path / "crawl", "test.warc", "train.warc", "test-0.jsonl")) == [
        "test.warc",
        "train.warc",
    ]
    assert dict(list_snapshot(str(tmp_path / "crawl")).skipped) == {"test-0.jsonl": BESIDE_ARCHIVES}


def test_other_splits_do_not_change_what_landed(tmp_path: Path) -> None:
    _, alone, _ = land(str(tmp_path / "root"), folder(tmp_path / "a" / "hub", *HUB[:2]))
    _, beside, _ = land(str(tmp_path / "root"), folder(tmp_path / "b" / "hub", *HUB, *MARKS))
    assert beside.fingerprint == alone.fingerprint


def test_a_run_says_what_it_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "refinery")
    run = Run(folder(tmp_path / "hub", *HUB), str(tmp_path / "root"), "hub", 0, {}, {}, 0, 0)
    work.land(Attempt(run, "r", "web", "land", handle, lambda _key, _value: None), fields={}, next_cut={})
    assert sum("of the split test" in line for line in caplog.messages) == 1
