"""A map has the same places each time, near ones for near vectors, and colors by any column; it has no text in it."""

import json
import re
from collections import Counter
from pathlib import Path

import numba
import numpy as np
import pytest
from refinery_study.map.points import BANDS, colored, columns_to_color
from refinery_study.map.projecting import FEWEST, is_installed, make_map, path_of, stored_map

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.takedowns import record
from pipeline_tasks.upkeep.vacuum import find_orphans
from tests.chain import reply
from tests.map_root import KINDS, RECIPE, SCRIPT, SNAPSHOT, given_map, published, stored

needs_umap = pytest.mark.skipif(not is_installed(), reason="umap-learn is not installed (requirements-dev.txt has it)")


@needs_umap
@pytest.mark.slow
def test_the_same_documents_have_the_same_places_and_near_ones_are_near(tmp_path: Path) -> None:
    """Two roots are laid out by two processes of UMAP itself, of which no fake says whether its seed is enough.

    The first compiles its loops, for ten seconds, and others have them from the cache, if there is one.
    """
    maps = []
    for name in ("a", "b"):
        version = published(tmp_path / name, 60)
        maps.append(make_map(str(tmp_path / name), version))
    kept = numba.config.CACHE_DIR
    assert not kept or len(set(Path(kept).glob("umap-learn-*/*/*.nbi"))) >= 3
    first, second = maps
    assert first is not None
    assert second is not None
    assert (first.ids, first.x, first.y) == (second.ids, second.x, second.y)
    assert make_map(str(tmp_path / "b"), version) == stored_map(str(tmp_path / "b"), version) == second
    kinds = np.array([stored(tmp_path / "b", version)[id_]["kind"] for id_ in second.ids])
    places = np.stack([second.x, second.y], axis=1)
    middles = np.stack([places[kinds == kind].mean(axis=0) for kind in KINDS])
    nearest = np.linalg.norm(places[:, None] - middles, axis=2).argmin(axis=1)
    assert [KINDS[at] for at in nearest] == kinds.tolist()
    sample = make_map(str(tmp_path / "b"), version, documents=FEWEST, seed=7)
    assert sample is not None
    assert (len(sample.ids), sample.looked_at, set(sample.ids) < set(second.ids)) == (FEWEST, 60, True)
    answer = reply("index", root=str(tmp_path / "a"), recipe=RECIPE, snapshot=SNAPSHOT)
    assert answer["map"] == path_of(version)
    assert find_orphans(str(tmp_path / "b"), grace=0).bytes == 0


def test_too_few_documents_have_no_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if is_installed():
        assert make_map(str(tmp_path), published(tmp_path, FEWEST - 1)) is None
        assert main(["look", "map", str(tmp_path)]) == RecipeError.exit_code
        assert "stage `embed`" in capsys.readouterr().err
    else:
        with pytest.raises(RecipeError, match="umap-learn"):
            make_map(str(tmp_path), published(tmp_path))


def test_points_have_the_values_of_a_column(tmp_path: Path) -> None:
    version = published(tmp_path)
    drawn, rows = given_map(tmp_path, version), stored(tmp_path, version)
    by_kind = colored(str(tmp_path), version, drawn, "kind")
    assert [(point.id, point.x, point.group) for point in by_kind.points] == [
        (id_, x, rows[id_]["kind"]) for id_, x in zip(drawn.ids, drawn.x, strict=True)
    ]
    assert {point.title for point in by_kind.points} == {row["title"] for row in rows.values()}
    by_score = Counter(point.group for point in colored(str(tmp_path), version, drawn, "score").points)
    assert (len(by_score), {*by_score.values()}) == (BANDS, {30 // BANDS})
    by_url = Counter(point.group for point in colored(str(tmp_path), version, drawn, "url").points)
    assert by_url["(others)"] == 30 - (len(by_url) - 1)
    assert {point.group for point in colored(str(tmp_path), version, drawn, "site").points} == {
        "site0.example",
        "site1.example",
    }
    assert columns_to_color(str(tmp_path), version) == ["site", "score", "source"]
    with pytest.raises(RecipeError, match=r"'colour'.*kind"):
        colored(str(tmp_path), version, drawn, "colour")


def test_what_was_taken_down_has_no_point(tmp_path: Path) -> None:
    version = published(tmp_path)
    drawn = given_map(tmp_path, version)
    record(str(tmp_path), [("doc", drawn.ids[3])], "a letter")
    shown = colored(str(tmp_path), version, drawn, "kind")
    assert (len(shown.points), shown.left) == (29, 1)
    assert drawn.ids[3] not in {point.id for point in shown.points}


def test_the_stored_map_has_no_text_title_or_url(tmp_path: Path) -> None:
    version = published(tmp_path)
    given_map(tmp_path, version)
    written = (tmp_path / path_of(version)).read_text()
    assert [word in written for word in ("Page", "text ", "example", "garden")] == [False] * 4


def test_the_command_writes_points_and_a_page_in_which_no_text_is_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    version = published(tmp_path)
    given_map(tmp_path, version)
    points, page = tmp_path / "map.json", tmp_path / "map.html"
    assert main(["look", "map", str(tmp_path), "--by", "kind", "--to", str(points)]) == 0
    facts = json.loads(points.read_text())
    assert Counter(point["group"] for point in facts["points"]) == dict.fromkeys(KINDS, 10)
    assert (
        main(["look", "map", str(tmp_path), "--by", "kind", "--to", str(page), "--pages", "http://localhost:8080/"])
        == 0
    )
    written = page.read_text()
    assert SCRIPT not in written
    assert written.count("</script>") == 1
    assert f"http://localhost:8080/refinery/document/{RECIPE}/{SNAPSHOT}?doc=" in written
    assert re.findall(r'(?:src|href)="', written.partition("<script")[0]) == []
    assert path_of(version) in capsys.readouterr().out
    assert main(["look", "map", str(tmp_path), "--to", "map.png"]) == RecipeError.exit_code
    assert ".json" in capsys.readouterr().err
