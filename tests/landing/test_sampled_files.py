"""What a trial reads of a snapshot: the fewest files and pieces that have the wanted share of its bytes."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.landing import cuts
from pipeline_tasks.landing.listing import land
from pipeline_tasks.landing.sampling import Piece, sampled

PIECES = st.lists(
    st.builds(Piece, st.text(max_size=9), st.integers(0, 99), st.integers(0, 1 << 40)),
    min_size=1,
    unique_by=lambda piece: (piece.path, piece.start),
)


@given(PIECES, st.floats(0, 1, exclude_min=True), st.floats(0, 1, exclude_min=True), st.randoms())
def test_a_sample_has_the_wanted_bytes_and_is_part_of_larger_ones(pieces, share, other, random) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    sizes = {(piece.path, piece.start): piece.size for piece in pieces}
    total = sum(sizes.values())
    chosen = sampled(pieces, share * total)
    shuffled = random.sample(pieces, len(pieces))
    assert chosen == sampled(shuffled, share * total)
    assert len(chosen) >= 1
    assert sum(sizes[key] for key in chosen) >= min(share * total, total)
    small, large = sorted((share, other))
    assert sampled(pieces, small * total) <= sampled(pieces, large * total)


def test_a_trial_reads_whole_files_and_pieces_of_large_ones(tmp_path: Path) -> None:
    landing, root = tmp_path / "landing" / "day", tmp_path / "root"
    landing.mkdir(parents=True)
    root.mkdir()
    line = b'{"text": "' + b"a" * 1000 + b'"}\n'
    lines = {"large": 2 * cuts.LEAST // len(line) + 1, "little": 1, "small": 1}
    (landing / "empty.jsonl").write_bytes(b"")
    for name, count in lines.items():
        (landing / f"{name}.jsonl").write_bytes(line * count)
    _, whole, _ = land(str(root), str(landing))
    _, part, listing = land(str(root), str(landing), sample=0.4)
    assert len(whole.shards) == 5  # the large file is cut in two
    assert len(listing.files) == 4
    assert set(part.shards) < set(whole.shards)
    assert [shard.path for shard in part.shards].count("landing:large.jsonl") == 1
    assert (part.params, whole.params) == ({"snapshot": "day", "sample": 0.4}, {"snapshot": "day"})


def test_a_trial_that_reads_everything_is_the_snapshot(tmp_path: Path) -> None:
    landing, root = tmp_path / "landing" / "day", tmp_path / "root"
    landing.mkdir(parents=True)
    root.mkdir()
    for name in ("a", "b"):
        (landing / f"{name}.jsonl").write_bytes(b'{"text": "aaa"}\n')
    (_, part, _), (path, whole, _), (same, _, _) = (
        land(str(root), str(landing), sample=each) for each in (0.4, 1, 0.9)
    )
    assert (part.params, len(part.shards)) == ({"snapshot": "day", "sample": 0.4}, 1)
    assert (whole.params, len(whole.shards), path) == ({"snapshot": "day"}, 2, same)
