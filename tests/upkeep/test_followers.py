"""Whoever keeps copies of published documents is asked to follow by its seam, and has a folder that no stage may have, or a name."""

from pathlib import Path

from pipeline_tasks.cards import RESERVED
from pipeline_tasks.seams import all_parts
from pipeline_tasks.upkeep.followers import SEAM, Follower, follow, follower_prefixes, followers
from tests.brought import site


def test_every_follower_has_a_reserved_folder_and_nothing_to_do_where_there_are_no_copies(tmp_path: Path) -> None:
    parts = all_parts(SEAM)
    assert "vectors" in parts
    assert followers() == tuple(part.load(Follower) for part in parts.values())
    assert len({each.folder or each.name for each in followers()}) == len(parts)
    for each in followers():
        assert each.folder in RESERVED or (each.folder == "" and each.name)
        assert each.hindered(str(tmp_path)) == ""
    assert [*follow(str(tmp_path))] == []
    assert [*tmp_path.iterdir()] == []


def test_what_others_bring_follows_too(tmp_path: Path) -> None:
    code = """
from pipeline_tasks.upkeep.followers import Follower

FOLLOWER = Follower("moths", lambda root: iter([f"moths of {root}"]), lambda root: "no net is installed here")
"""
    with site(tmp_path / "site") as packages:
        packages.install("moths", SEAM, {"moths": "brought_moths:FOLLOWER"}, code)
        assert [*follow("somewhere")] == ["moths of somewhere"]
        assert {"vectors/", "moths/"} == {*follower_prefixes()}
        assert followers()[-1].hindered("somewhere") == "no net is installed here"
    assert "moths/" not in follower_prefixes()
