"""The dataset under torch's DataLoader and torchdata's StatefulDataLoader; `make train-test` runs this file."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip(
    "torch", reason="torch is not installed here; `make train-test` runs this file", exc_type=ImportError
)
from torch.utils.data import DataLoader  # noqa: E402 -- after the skip
from torchdata.stateful_dataloader import StatefulDataLoader  # noqa: E402 -- after the skip

from pipeline_tasks.errors import RecipeError  # noqa: E402 -- after the skip
from pipeline_tasks.testing.training_dataset import Packed, write_dataset  # noqa: E402 -- after the skip
from pipeline_tasks.training.dataset import TokenDataset  # noqa: E402 -- after the skip
from pipeline_tasks.training.share import Passes, Split  # noqa: E402 -- after the skip
from pipeline_tasks.training.usage import Stalls, Usage, usage_of  # noqa: E402 -- after the skip

pytestmark = [
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),  # torchdata 0.11 with torch 2.13
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),  # more workers than this machine has processors
]

PROJECT = Path(__file__).parents[2]
RANKS = (1, 2, 4, 8)
WORKERS = (0, 2, 4)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    return write_dataset(tmp_path_factory.mktemp("dataset"), [100, 1, 57, 143])


def loader_of(dataset: TokenDataset, workers: int, kind: Any = StatefulDataLoader, **settings: object) -> Any:
    return kind(
        dataset,
        batch_size=dataset.split.batch_size,
        num_workers=workers,
        collate_fn=dataset.collate_tensors,
        **settings,
    )


def used(batches: list[Any]) -> list[tuple[int, int]]:
    pairs = [zip(batch["epoch"].tolist(), batch["index"].tolist(), strict=True) for batch in batches]
    return [pair for pair in itertools.chain(*pairs) if pair[1] >= 0]


@pytest.mark.parametrize("tail", ["pad", "short"])
@pytest.mark.parametrize(("ranks", "workers"), list(itertools.product(RANKS, WORKERS)))
def test_ranks_and_workers_together_have_every_sequence_once(
    ranks: int, workers: int, tail: Any, packed: Packed
) -> None:
    passes, batches, usage = Passes(epochs=2, tail=tail), [], Usage()
    for rank in range(ranks):
        dataset = TokenDataset(str(packed.folder), Split(rank, ranks, 3), passes)
        share = list(loader_of(dataset, workers))
        assert tail == "short" or len(share) == -(-602 // (3 * ranks))
        batches += share
        usage = sum(map(usage_of, share), usage)
    assert sorted(used(batches)) == sorted(itertools.product(range(2), range(301)))
    assert usage == dataset.expected_usage(0, dataset.places)


def test_a_run_goes_on_at_twenty_places_with_other_ranks_and_workers(packed: Packed) -> None:
    drawn = random.Random(3)
    for _ in range(20):
        passes = Passes(shuffle="always", seed=drawn.randrange(100), block=drawn.choice([1, 16, 256]))
        seen: list[tuple[int, int]] = []
        state = None
        for phase in range(2):
            ranks, size, workers = drawn.choice(RANKS), drawn.choice([1, 2, 5]), drawn.choice(WORKERS)
            steps = 10**9 if phase else drawn.randrange(1, max(2, 250 // (ranks * size)))
            resume_at = set()
            for rank in range(ranks):
                dataset = TokenDataset(str(packed.folder), Split(rank, ranks, size), passes)
                if state:
                    dataset.load_state_dict(state)
                batches = list(itertools.islice(loader_of(dataset, workers), steps))
                seen += used(batches)
                resume_at.add(batches[-1]["resume_at"])
            (position,) = resume_at
            state = json.loads(json.dumps(dataset.state_at(position)))
        assert Counter(seen) == Counter((0, index) for index in range(301))


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("after", [0, 1, 2, 5, 22])
def test_a_stateful_loader_goes_on_with_the_batch_that_would_have_come(
    after: int, workers: int, packed: Packed
) -> None:
    passes = Passes(shuffle="always", tail="short")
    loaders = [loader_of(TokenDataset(str(packed.folder), Split(1, 2, 3), passes), workers) for _ in range(2)]
    batches = list(itertools.islice(loaders[0], after))
    state = loaders[0].state_dict()
    loaders[1].load_state_dict(state)
    whole = loader_of(TokenDataset(str(packed.folder), Split(1, 2, 3), passes), 0)
    assert used([*batches, *loaders[1]]) == used(list(whole))


def test_a_stateful_loader_of_other_ranks_is_refused_with_the_way_out(packed: Packed) -> None:
    loaders = [loader_of(TokenDataset(str(packed.folder), Split(0, ranks, 3)), 2) for ranks in (2, 4)]
    list(itertools.islice(loaders[0], 3))
    loaders[1].load_state_dict(loaders[0].state_dict())
    with pytest.raises(RecipeError, match="state_at"):
        next(iter(loaders[1]))


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_the_plain_loader_reads_the_same(context: str, packed: Packed) -> None:
    split = Split(0, 1, 4)
    dataset = TokenDataset(str(packed.folder), split)
    loader = loader_of(dataset, 2, DataLoader, multiprocessing_context=context)
    loaded, expected = (
        [{name: torch.as_tensor(value).tolist() for name, value in batch.items()} for batch in batches]
        for batches in (loader, dataset.batches())
    )
    assert len(expected) == -(-301 // 4)
    assert loaded == expected


def test_a_loader_with_another_batch_size_is_refused(packed: Packed) -> None:
    dataset = TokenDataset(str(packed.folder), Split(0, 1, 4))
    with pytest.raises(RecipeError, match="batch_size 4"):
        next(iter(DataLoader(dataset, batch_size=2, collate_fn=dataset.collate)))


def test_a_batch_trains_a_model(packed: Packed) -> None:
    """Ids and labels have the types that torch wants, pads have no gradient, and borders are those of each document."""
    dataset = TokenDataset(str(packed.folder), Split(batch_size=4))
    stalls = Stalls()
    (batch, *_) = stalls.watched(loader_of(dataset, 0))
    vocabulary = 60_001
    weights = torch.zeros(vocabulary, 4, requires_grad=True)
    logits = torch.nn.functional.embedding(batch["input_ids"], weights) @ torch.randn(4, vocabulary)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), reduction="sum")
    loss.backward()
    tokens = int(batch["n_tokens"].sum())
    assert loss.item() == pytest.approx(tokens * torch.log(torch.tensor(vocabulary)).item(), rel=1e-4)
    assert batch["cu_seqlens"].dtype == torch.int32
    assert batch["cu_seqlens"][-1] == batch["input_ids"].numel()
    assert batch["index"].tolist() == [0, 1, 2, 3]
    batch["input_ids"][0, 0] = 1  # tensors are the loader's own memory, and not that of the file
    assert 0 <= stalls.share <= 1


RUN = """
import json, sys
from pathlib import Path
import torch
from torchdata.stateful_dataloader import StatefulDataLoader
from pipeline_tasks.training.dataset import TokenDataset
from pipeline_tasks.training.share import Passes, Split

checkpoint = Path(sys.argv[2])
dataset = TokenDataset(sys.argv[1], Split(0, 2, 2), Passes(epochs=100, shuffle="always"))
loader = StatefulDataLoader(dataset, batch_size=2, num_workers=2, collate_fn=dataset.collate_tensors)
if checkpoint.exists():
    loader.load_state_dict(torch.load(checkpoint))
for batch in loader:
    input()
    torch.save(loader.state_dict(), checkpoint.with_suffix(".new"))
    checkpoint.with_suffix(".new").rename(checkpoint)
    print(json.dumps(batch["place"].tolist()), flush=True)
"""


def test_a_run_that_was_killed_goes_on_with_the_batch_that_would_have_come(packed: Packed, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", RUN, str(packed.folder), str(tmp_path / "state.pt")]
    environ, expected = {**os.environ, "PYTHONPATH": str(PROJECT)}, 0
    for steps in (1, 6, 15, 30):
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as run:
            assert run.stdin is not None
            assert run.stdout is not None
            for _ in range(steps):
                run.stdin.write("\n")
                run.stdin.flush()
                assert json.loads(run.stdout.readline()) == [expected, expected + 2]
                expected += 4
            run.send_signal(signal.SIGKILL)
