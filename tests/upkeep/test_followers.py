"""Whoever keeps copies of published documents is asked to follow by its seam, and has a folder that no stage may have."""

from pathlib import Path

from pipeline_tasks.cards import RESERVED
from pipeline_tasks.seams import all_parts
from pipeline_tasks.upkeep.followers import SEAM, Follower, follow, followers


def test_every_follower_has_a_reserved_folder_and_nothing_to_do_where_there_are_no_copies(tmp_path: Path) -> None:
    parts = all_parts(SEAM)
    assert "vectors" in parts
    assert followers() == tuple(part.load(Follower) for part in parts.values())
    assert len({each.folder for each in followers()}) == len(parts)
    for each in followers():
        assert each.folder in RESERVED
        assert each.hindered(str(tmp_path)) == ""
    assert [*follow(str(tmp_path))] == []
    assert [*tmp_path.iterdir()] == []
