"""A local dataset: every rank and worker gets its share, and a run goes on from any place with any split."""

import itertools
import json
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import ContractError, DigestMismatch, RecipeError
from pipeline_tasks.sealed import SEAL, canonical, sha256
from pipeline_tasks.testing.training_dataset import Packed, write_dataset
from pipeline_tasks.training import dataset as datasets
from pipeline_tasks.training.batch import IGNORED, Batch, Item
from pipeline_tasks.training.dataset import TokenDataset
from pipeline_tasks.training.folder import LocalFolder
from pipeline_tasks.training.reader import MOST_MAPS, Reader
from pipeline_tasks.training.share import Passes, Share, Split, Tail, Worker
from pipeline_tasks.training.usage import Stalls, Usage, usage_of
from tests.descriptors import descriptors

PROJECT = Path(__file__).parents[2]

RANKS = (1, 2, 4, 8)
WORKERS = (0, 2, 4)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    return write_dataset(tmp_path_factory.mktemp("dataset"), [100, 1, 57, 0, 143])


def test_what_is_mapped_is_not_fetched_again(packed: Packed) -> None:
    index = TokenDataset(str(packed.folder)).index
    reader, sequences = Reader(index, LocalFolder(packed.folder)), np.arange(index.sequences)
    asked = list(reader.spans(sequences))
    assert {shard.bin for shard in index.shards if shard.sequences} <= {span.file for span in asked}
    assert len(list(reader.rows(sequences))) == len(sequences)
    assert list(reader.spans(sequences)) == []


def loader(dataset: TokenDataset, workers: int) -> Iterator[Batch]:
    """Yield batches in the order in which torch's data loader takes them of its workers; `test_torch.py` has the real one."""
    if not workers:
        yield from dataset.batches()
        return
    shares = [_worker_batches(dataset, Worker(number, workers)) for number in range(workers)]
    while shares:
        for share in list(shares):
            batch = next(share, None)
            if batch is None:
                shares.remove(share)
            else:
                yield batch


def _worker_batches(dataset: TokenDataset, worker: Worker) -> Iterator[Batch]:
    own, iterator = pickle.loads(pickle.dumps(dataset)), None
    while True:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(datasets, "_worker", lambda: worker)
            iterator = iterator or own.batches()
            batch = next(iterator, None)
        if batch is None:
            return
        yield batch


def used(batches: list[Batch]) -> list[tuple[int, int]]:
    return [
        (int(epoch), int(index))
        for batch in batches
        for epoch, index in zip(batch["epoch"], batch["index"], strict=True)
        if index >= 0
    ]


def test_an_item_is_its_sequence_with_borders_and_origin(packed: Packed) -> None:
    items = list(TokenDataset(str(packed.folder)))
    assert [item["index"] for item in items] == list(range(301))
    for item in items:
        index = item["index"]
        assert item["input_ids"].tolist() == packed.ids(index)
        assert item["cu_seqlens"].tolist() == packed.borders(index)
        assert item["n_tokens"] == packed.tokens(index)
    origin = [(item["shard"], item["sequence"]) for item in items]
    assert origin == [(shard, number) for shard, count in enumerate([100, 1, 57, 0, 143]) for number in range(count)]


def test_pads_have_no_label_and_borders_run_over_the_batch(packed: Packed) -> None:
    batch = next(TokenDataset(str(packed.folder), Split(batch_size=4)).batches())
    for row in range(4):
        tokens = packed.tokens(row)
        assert batch["labels"][row].tolist() == [*packed.ids(row)[:tokens], *[IGNORED] * (16 - tokens)]
    expected = [0] + [16 * row + end for row in range(4) for end in packed.borders(row)[1:]]
    assert batch["cu_seqlens"].tolist() == expected
    assert batch["max_seqlen"] == max(np.diff(expected))


@pytest.mark.parametrize("tail", ["pad", "short"])
@pytest.mark.parametrize(("ranks", "workers"), list(itertools.product(RANKS, WORKERS)))
def test_ranks_and_workers_together_have_every_sequence_once(
    ranks: int, workers: int, tail: str, packed: Packed
) -> None:
    batches = [
        list(loader(TokenDataset(str(packed.folder), Split(rank, ranks, 3), Passes(epochs=2, tail=tail)), workers))  # type: ignore[arg-type]
        for rank in range(ranks)
    ]
    everything = sorted(itertools.product(range(2), range(301)))
    assert sorted(pair for rank in batches for pair in used(rank)) == everything
    steps = {len(rank) for rank in batches}
    assert tail == "short" or steps == {-(-602 // (ranks * 3))}


@pytest.mark.parametrize(("ranks", "workers"), list(itertools.product(RANKS, WORKERS)))
def test_steps_are_the_same_for_any_number_of_workers(ranks: int, workers: int, packed: Packed) -> None:
    """After t steps the ranks have consumed the first t global batches of the run, whatever makes the batches."""
    passes = Passes(shuffle="always", seed=5)
    run = [item["index"] for item in TokenDataset(str(packed.folder), passes=passes)]
    shares = [
        list(loader(TokenDataset(str(packed.folder), Split(rank, ranks, 2), passes), workers)) for rank in range(ranks)
    ]
    assert len(shares[0]) == -(-301 // (ranks * 2))
    for step in range(len(shares[0])):
        together = {int(index) for share in shares for index in share[step]["index"] if index >= 0}
        assert together == set(run[step * ranks * 2 : (step + 1) * ranks * 2])


def test_what_does_not_fill_the_last_batch_is_left_out_only_if_asked(packed: Packed) -> None:
    shares = [
        list(TokenDataset(str(packed.folder), Split(rank, 4, 2), Passes(tail="drop")).batches()) for rank in range(4)
    ]
    assert {len(share) for share in shares} == {301 // 8}
    assert sorted(pair for share in shares for pair in used(share)) == [(0, index) for index in range(296)]


def test_pads_fill_the_last_batch_and_are_marked(packed: Packed) -> None:
    (*_, last) = TokenDataset(str(packed.folder), Split(7, 8)).batches()
    assert last["index"].tolist() == [-1]
    assert last["n_tokens"].tolist() == [0]
    assert (last["labels"] == IGNORED).all()
    assert usage_of(last) == Usage()


def test_a_run_goes_on_at_twenty_places_with_other_ranks_and_workers(tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [20, 1, 12, 0, 28])
    drawn, places = random.Random(11), set()
    for _ in range(20):
        passes = Passes(
            epochs=drawn.choice([1, 3]), shuffle="always", seed=drawn.randrange(100), block=drawn.choice([1, 16, 256])
        )
        state, seen, usage = None, [], Usage()
        for phase in range(3):
            ranks, size = drawn.choice(RANKS), drawn.choice([1, 2, 5])
            steps = 10**9 if phase == 2 else drawn.randrange(1, max(2, 28 // (ranks * size)))
            workers, resume_at = drawn.choice(WORKERS), set()
            for rank in range(ranks):
                dataset = TokenDataset(str(packed.folder), Split(rank, ranks, size), passes)
                if state is not None:
                    dataset.load_state_dict(state)
                batches = list(itertools.islice(loader(dataset, workers), steps))
                seen += used(batches)
                usage = sum(map(usage_of, batches), usage)
                resume_at.add(batches[-1]["resume_at"])
            (position,) = resume_at
            places |= {position} if 0 < position < dataset.places else set()
            state = json.loads(json.dumps(dataset.state_at(position)))
        whole = TokenDataset(str(packed.folder), passes=passes)
        assert Counter(seen) == Counter(itertools.product(range(passes.epochs), range(61)))
        assert usage == whole.expected_usage(0, whole.places)
    assert len(places) >= 20


@given(st.data())
def test_shares_are_a_partition_of_every_global_batch(data: st.DataObject) -> None:
    ranks, size, workers = (data.draw(st.integers(1, 9)) for _ in range(3))
    start, places = data.draw(st.integers(0, 50)), data.draw(st.integers(0, 300))
    tail = data.draw(st.sampled_from(["pad", "drop", "short"]))
    shares = [
        Share(start, start + places, Split(rank, ranks, size), Worker(number, workers), tail)
        for rank in range(ranks)
        for number in range(workers)
    ]
    taken = [
        place for share in shares for step in share.steps(share.worker.number, 0) for place in step.places.tolist()
    ]
    expected = {
        "pad": -(-places // (ranks * size)) * ranks * size,
        "drop": places // (ranks * size) * ranks * size,
        "short": places,
    }
    assert sorted(taken) == list(range(start, start + expected[tail]))


# --- State ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("after", [0, 1, 5, 6, 7, 40, 75, 76])
def test_each_process_goes_on_at_the_item_that_would_have_come(
    workers: int, after: int, packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(max(workers, 1)):
        monkeypatch.setattr(datasets, "_worker", lambda number=number: Worker(number, max(workers, 1)))
        split = Split(1, 2, 2)
        dataset, whole = (TokenDataset(str(packed.folder), split) for _ in range(2))
        iterator = iter(dataset)
        before = list(itertools.islice(iterator, after))
        state = json.loads(json.dumps(dataset.state_dict()))
        iterator.close()
        resumed = TokenDataset(str(packed.folder), split)
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state
        places = [item["place"] for item in [*before, *resumed]]
        assert places == [item["place"] for item in whole]


def test_a_state_between_steps_fits_any_split(packed: Packed) -> None:
    dataset = TokenDataset(str(packed.folder), Split(0, 2, 3))
    batches = dataset.batches()
    for batch in itertools.islice(batches, 4):
        position = batch["resume_at"]
    assert dataset.state_dict() == dataset.state_at(position) == dataset.state_at(24)
    other = TokenDataset(str(packed.folder), Split(0, 1, 7))
    other.load_state_dict(dataset.state_dict())
    assert next(iter(other))["place"] == 24


def test_a_state_within_a_step_fits_its_own_process_only(packed: Packed) -> None:
    dataset = TokenDataset(str(packed.folder), Split(0, 2, 3))
    next(iter(dataset))
    for split in (Split(1, 2, 3), Split(0, 4, 3), Split(0, 2, 4)):
        other = TokenDataset(str(packed.folder), split)
        other.load_state_dict(dataset.state_dict())
        with pytest.raises(RecipeError, match="state_at"):
            next(iter(other))


@pytest.mark.parametrize(("after", "tail"), [(1, "pad"), (2, "pad"), (151, "pad"), (151, "short"), (149, "drop")])
def test_batches_go_on_within_a_step_with_the_rest_of_it(after: int, tail: Tail, packed: Packed) -> None:
    """The rest of a step came together with the start of the next one, which was refused as a wrong batch size."""
    split, passes = Split(1, 2, 3), Passes(tail=tail)
    dataset, resumed = (TokenDataset(str(packed.folder), split, passes) for _ in range(2))
    expected = [item["place"] for item in dataset][after:]
    list(itertools.islice(dataset, after))
    resumed.load_state_dict(dataset.state_dict())
    batches = list(resumed.batches())
    assert [place for batch in batches for place in batch["place"].tolist()] == expected
    assert [len(batch["place"]) for batch in batches[:-1]] == [3 - after % 3, *[3] * (len(batches) - 2)][
        : len(batches) - 1
    ]


def test_a_state_of_another_dataset_or_order_is_refused(packed: Packed, tmp_path: Path) -> None:
    state = TokenDataset(str(packed.folder)).state_at(9)
    other = write_dataset(tmp_path, [30])
    for folder, passes, named in (
        (other.folder, Passes(), "dataset"),
        (packed.folder, Passes(seed=1), "order"),
        (packed.folder, Passes(block=8), "order"),
    ):
        with pytest.raises(RecipeError, match=re.escape(str(folder)) + f".* {named} "):
            TokenDataset(str(folder), passes=passes).load_state_dict(state)


def test_a_place_outside_the_run_is_refused(packed: Packed) -> None:
    with pytest.raises(RecipeError, match=r"301 .*302"):
        TokenDataset(str(packed.folder)).state_at(302)


def test_iterating_again_is_the_same_run_again(packed: Packed) -> None:
    dataset = TokenDataset(str(packed.folder))
    dataset.load_state_dict(dataset.state_at(200))
    assert [item["place"] for item in dataset] == [item["place"] for item in dataset] == list(range(200, 301))


RUN = """
import json, sys, time
from pathlib import Path
from pipeline_tasks.training.dataset import TokenDataset
from pipeline_tasks.training.share import Passes, Split
from tests.descriptors import descriptors

folder, checkpoint = sys.argv[1], Path(sys.argv[2])
dataset = TokenDataset(folder, Split(0, 2, 2), Passes(epochs=100, shuffle="always"))
if checkpoint.exists():
    dataset.load_state_dict(json.loads(checkpoint.read_text()))
for batch in dataset.batches():
    print(json.dumps(batch["place"].tolist()), flush=True)
    checkpoint.with_suffix(".new").write_text(json.dumps(dataset.state_dict()))
    checkpoint.with_suffix(".new").rename(checkpoint)
"""


def test_a_run_that_was_killed_goes_on_with_the_batch_that_would_have_come(packed: Packed, tmp_path: Path) -> None:
    checkpoint, expected = tmp_path / "state.json", 0
    for lines in (3, 17, 40):
        command = [sys.executable, "-c", RUN, str(packed.folder), str(checkpoint)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(PROJECT)}
        ) as run:
            assert run.stdout is not None
            places = [json.loads(line) for line in itertools.islice(run.stdout, lines)]
            assert places == [[place, place + 2] for place in range(expected, expected + 4 * lines, 4)]
            run.send_signal(signal.SIGKILL)
        expected = json.loads(checkpoint.read_text())["position"]  # it may have come further than this test has read


# --- Proofs -----------------------------------------------------------------------------------------------------------


def test_a_replayed_or_skipped_sequence_changes_the_usage(packed: Packed) -> None:
    dataset = TokenDataset(str(packed.folder), Split(batch_size=7), Passes(epochs=2, tail="short"))
    batches = list(dataset.batches())
    expected = dataset.expected_usage(0, dataset.places)
    assert sum(map(usage_of, batches), Usage()) == expected
    assert expected.tokens == 2 * dataset.index.tokens
    for wrong in (batches[1:], [*batches, batches[3]], [batches[0], *batches[2:], batches[0]]):
        assert sum(map(usage_of, wrong), Usage()) != expected
    assert usage_of(batches[0]) == dataset.expected_usage(0, 7)


def test_the_share_of_waiting_is_between_none_and_all(packed: Packed) -> None:
    stalls, dataset = Stalls(), TokenDataset(str(packed.folder))
    assert len(list(stalls.watched(dataset))) == 301
    assert 0 < stalls.waited_s <= stalls.elapsed_s
    assert 0 < dataset.fetching.waited_s <= stalls.elapsed_s, "reading waits within the time of the whole"
    assert 0 < stalls.share <= 1


# --- What is refused --------------------------------------------------------------------------------------------------


def test_verify_finds_every_file_that_was_changed(tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [20, 10])
    dataset = TokenDataset(str(packed.folder))
    dataset.verify()
    paths = sorted((tmp_path / "publish" / "shards").iterdir())
    assert len(paths) == 6
    for path in paths:
        body = path.read_bytes()
        path.write_bytes(bytes([body[0] ^ 1]) + body[1:])
        with pytest.raises(DigestMismatch, match=path.name):
            dataset.verify()
        path.write_bytes(body)


@pytest.mark.parametrize("suffix", ["dataset.json", ".bin"])
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(suffix: str, tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [7])
    [replaced] = [path for path in tmp_path.rglob("*") if path.name.endswith(suffix)]
    replaced.unlink()
    os.mkfifo(replaced)
    with pytest.raises(ContractError, match=re.escape(f"{replaced.name} is no regular file")):
        list(TokenDataset(str(packed.folder)))


@pytest.mark.parametrize("suffix", ["bin", "ends", "lineage.parquet"])
def test_a_file_that_is_missing_or_cut_is_named_with_the_way_out(suffix: str, tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [20])
    (path,) = (tmp_path / "publish" / "shards").glob(f"*.{suffix}")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        ContractError, match=rf"{path.name} .*{len(path.read_bytes())} .*dataset\.json .*{len(path.read_bytes()) + 1};"
    ):
        list(TokenDataset(str(packed.folder)))
    path.unlink()
    with pytest.raises(ContractError, match=rf"{path.name} .*dataset\.json"):
        list(TokenDataset(str(packed.folder)))


def test_ends_and_lineage_that_disagree_are_named(tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [20])
    (path,) = (tmp_path / "publish" / "shards").glob("*.ends")
    path.write_bytes((np.fromfile(path, "<i8") - 1).tobytes())
    with pytest.raises(ContractError, match=rf"{path.name}: sequence 0 .*16"):
        list(TokenDataset(str(packed.folder)))


def test_a_sequence_that_does_not_end_where_it_has_to_is_named(tmp_path: Path) -> None:
    """Without pads at its last id; with pads at its last token, too."""
    full = write_dataset(tmp_path / "full", [5], pads=False)
    (path,) = (tmp_path / "full" / "publish" / "shards").glob("*.ends")
    path.write_bytes((np.fromfile(path, "<i8") - 1).tobytes())
    with pytest.raises(ContractError, match=rf"{path.name}: sequence 0 .*16"):
        list(TokenDataset(str(full.folder)))
    packed = write_dataset(tmp_path / "packed", [20])
    (path,) = (tmp_path / "packed" / "publish" / "shards").glob("*.ends")
    padded = next(index for index in range(20) if packed.tokens(index) < 16)
    ends = np.fromfile(path, "<i8")
    ends[ends == padded * 16 + packed.tokens(padded)] += 1
    path.write_bytes(ends.tobytes())
    with pytest.raises(ContractError, match=rf"{path.name}: sequence {padded} .*{packed.tokens(padded)} of 16"):
        list(TokenDataset(str(packed.folder)))


def rewritten_lineage(folder: Path, change: Callable[[pa.Table], pa.Table]) -> str:
    """Change the lineage of the one shard, and what the index says about it; return the name of its file."""
    index = json.loads((folder / "dataset.json").read_text())
    file = index["shards"][0]["lineage"]
    path = folder / file["path"]
    pq.write_table(change(pq.read_table(path)), path)
    file |= {"bytes": path.stat().st_size, "sha256": sha256(path.read_bytes())}
    (folder / "dataset.json").write_text(json.dumps(index))
    return path.name


@pytest.mark.parametrize(
    "change",
    [
        lambda pieces: pieces.drop_columns("length"),
        lambda pieces: pieces.slice(1),
        lambda pieces: pa.concat_tables([pieces, pieces.slice(0, 1)]),
        lambda pieces: pieces.set_column(0, "sequence", pc.add(pieces["sequence"], 1)),
        lambda pieces: pieces.set_column(0, "sequence", pc.subtract(pieces["sequence"], 1)),
        lambda pieces: pieces.set_column(0, "sequence", pc.min_element_wise(pieces["sequence"], 18)),
    ],
    ids=["no lengths", "a piece less", "a piece more", "a sequence more", "a sequence below 0", "too long a sequence"],
)
def test_a_lineage_that_is_not_of_its_shard_is_named(change: Callable[[pa.Table], pa.Table], tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [20])
    name = rewritten_lineage(packed.folder, change)
    with pytest.raises(ContractError, match=re.escape(name)):
        list(TokenDataset(str(packed.folder)))


def changed(packed: Packed, **fields: object) -> str:
    path = packed.folder / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return str(packed.folder)


@pytest.mark.parametrize(
    ("fields", "error", "named"),
    [
        ({"format": 2}, RecipeError, "format 2 "),
        ({"sequences": 21}, ContractError, "sequences .*21, .* 20;"),
        ({"tokens": 1}, ContractError, "tokens .*1, .* 320;"),
        ({"pads": 1}, ContractError, "320 tokens .* 1 pads"),
        ({"length": 8, "tokens": 160}, ContractError, "tokens .*160, .* 320;"),
        ({"dtype": "int8"}, ContractError, "'int8', 'little'"),
        ({"byte_order": "big"}, ContractError, "'uint16', 'big'"),
        ({"length": None}, ContractError, "None"),
        ({"shards": 3}, ContractError, ""),
        ({"shards": [{"sequences": 20}]}, ContractError, "'bin'"),
    ],
)
def test_an_index_that_contradicts_itself_is_refused(
    fields: dict[str, object], error: type[Exception], named: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=rf"dataset\.json.*{named}"):
        TokenDataset(changed(write_dataset(tmp_path, [20], pads=False), **fields))


def sealed(packed: Packed) -> Path:
    path = packed.folder / "dataset.json"
    fields = json.loads(path.read_text())
    path.write_text(json.dumps({**fields, SEAL: sha256(canonical(fields))}, indent=1))
    return path


def digits(body: str) -> list[int]:
    return [at for at, character in enumerate(body) if character.isdigit()]


def test_an_index_with_a_changed_digit_is_refused(tmp_path: Path) -> None:
    """Digests of ends and lineage, of which a digit may change, and the id of pads were believed."""
    path = sealed(write_dataset(tmp_path, [3, 2]))
    body = path.read_text()
    assert TokenDataset(str(path)).index.sequences == 5
    for at in digits(body):
        path.write_text(f"{body[:at]}{(int(body[at]) + 1) % 10}{body[at + 1 :]}")
        with pytest.raises(ContractError, match=re.escape(f"{path} ")):
            TokenDataset(str(path))


def test_an_index_whose_seal_lost_its_name_is_refused(tmp_path: Path) -> None:
    path = sealed(write_dataset(tmp_path, [3, 2]))
    path.write_text(path.read_text()[::-1].replace("652ahs", "352ahs", 1)[::-1])
    with pytest.raises(DigestMismatch, match=re.escape(f"{path} ")):
        TokenDataset(str(path))


def test_an_index_whose_seal_is_of_no_canonical_form_is_refused(tmp_path: Path) -> None:
    path = sealed(write_dataset(tmp_path, [3, 2]))
    path.write_text(path.read_text().replace('"corpus"', r'"corpus\ud800"'))
    with pytest.raises(DigestMismatch, match=re.escape(f"{path} ")):
        TokenDataset(str(path))


@pytest.mark.parametrize(
    ("file", "fields"),
    [
        ("bin", {"bytes": 20 * 32 - 1}),
        ("bin", {"bytes": 20 * 32 + 1}),
        ("ends", {"bytes": 20 * 8 - 8}),
        ("ends", {"bytes": 20 * 8 + 4}),
        ("bin", {"sha256": "ab" * 31}),
        ("ends", {"sha256": "ab" * 33}),
        ("lineage", {"sha256": "AB" * 32}),
    ],
)
def test_a_shard_that_contradicts_its_index_is_refused_by_the_name_of_its_file(
    file: str, fields: dict[str, object], tmp_path: Path
) -> None:
    packed = write_dataset(tmp_path, [20])
    shards = json.loads((packed.folder / "dataset.json").read_text())["shards"]
    shards[0][file] |= fields
    with pytest.raises(ContractError, match=rf"dataset\.json: {re.escape(shards[0][file]['path'])} "):
        TokenDataset(changed(packed, shards=shards))


def test_an_end_for_each_sequence_is_enough(tmp_path: Path) -> None:
    """Sequences of one piece without pads have one end each."""
    packed = write_dataset(tmp_path, [20])
    shards = json.loads((packed.folder / "dataset.json").read_text())["shards"]
    shards[0]["ends"] |= {"bytes": 20 * 8}
    assert TokenDataset(changed(packed, shards=shards)).index.shards[0].ends.bytes == 20 * 8


@pytest.mark.parametrize("path", ["/etc/passwd", "../../outside", "../shards/../../../outside"])
def test_a_path_that_leads_out_of_the_dataset_is_refused(path: str, tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [20])
    shards = json.loads((packed.folder / "dataset.json").read_text())["shards"]
    shards[0]["bin"]["path"] = path
    with pytest.raises(ContractError, match=re.escape(f"'{path}'")):
        TokenDataset(changed(packed, shards=shards))


def test_a_folder_without_a_dataset_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=re.escape(f"{tmp_path / 'dataset.json'} ")):
        TokenDataset(str(tmp_path))
    (tmp_path / "dataset.json").write_text("{")
    with pytest.raises(ContractError, match=re.escape(f"{tmp_path / 'dataset.json'} ")):
        TokenDataset(str(tmp_path / "dataset.json"))


def test_a_wrong_split_order_or_type_is_refused(packed: Packed) -> None:
    for wrong in (lambda: Split(2, 2), lambda: Split(0, 1, 0), lambda: Passes(epochs=0), lambda: Passes(tail="carry")):  # type: ignore[arg-type]
        with pytest.raises(RecipeError):
            wrong()
    with pytest.raises(RecipeError, match=rf"seed={1 << 64}\b"):
        Passes(seed=1 << 64)  # the first epoch has no permutation: it was an OverflowError at the second
    assert len(list(TokenDataset(str(packed.folder), passes=Passes(epochs=2, seed=(1 << 64) - 1)))) == 602
    with pytest.raises(RecipeError, match=r"uint16 .*'int8'"):
        TokenDataset(str(packed.folder), dtype="int8")


def test_a_batch_of_another_size_than_the_split_is_refused(packed: Packed) -> None:
    dataset = TokenDataset(str(packed.folder), Split(batch_size=2))
    items: list[Item] = list(itertools.islice(dataset, 4))
    for wrong in (items, items[:1]):
        with pytest.raises(RecipeError, match="batch_size"):
            dataset.collate(wrong)
    with pytest.raises(RecipeError, match=r"2 .*batch_size"):
        dataset.collate(items[1:3])


def test_more_shards_than_are_mapped_at_a_time_are_read(tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [1] * 300, dtype="uint32")
    passes = Passes(epochs=2, shuffle="always", block=1)
    most = 0
    for item in TokenDataset(str(packed.folder), passes=passes, dtype="uint32"):
        assert item["input_ids"].tolist() == packed.ids(item["index"])
        most = max(most, len(descriptors(tmp_path)))
    assert MOST_MAPS - 10 < most <= MOST_MAPS + 10


def test_memory_does_not_grow_with_epochs(packed: Packed) -> None:
    dataset = TokenDataset(str(packed.folder), Split(batch_size=7), Passes(epochs=43, shuffle="always"))
    tracemalloc.start()
    try:
        starts = (batch for batch in dataset.batches() if batch["place"][0] % 301 == 0)
        sizes = [tracemalloc.get_traced_memory()[0] for _ in starts]
    finally:
        tracemalloc.stop()
    assert len(sizes) == 43
    assert max(sizes[3:]) - sizes[2] < 100_000


LIGHT = """
import sys
import pipeline_tasks.training.dataset, pipeline_tasks.training.bucket_folder, pipeline_tasks.training.usage
ours = sorted(name for name in sys.modules if name.startswith("pipeline_tasks."))
heavy = ("airflow", "pyspark", "ray", "torch", "boto3", "numba", "pandas", "yaml", "orjson", "xxhash", "zstandard")
print([name for name in heavy if name in sys.modules])
"""


def test_the_loader_imports_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], check=True, capture_output=True, text=True, cwd=PROJECT)
    assert done.stdout.strip() == "[]"
