"""The page of a lineage: every manifest with its parents, as a drawing and as tables with links."""

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.inspect.versions.lineage import lineage
from pipeline_tasks.publish.logs import version_log
from tests import small_build
from tests.markup import assert_inert
from tests.small_root import DAYS, RECIPE, SmallRoot

SCRIPT = "<script>alert(1)<script>"


@pytest.fixture(scope="module")
def root(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with three days, a training dataset of two of them, and a version whose snapshot is named as a script."""
    small = small_build.copied(small_root, tmp_path_factory.mktemp("built"))
    small_build.build(small)
    version = version_log.current(small.root, RECIPE, DAYS[1])
    entry = {"recipe": "web", "snapshot": SCRIPT, "landing": "", "manifests": version.manifests, "verdicts": {}}
    version_log.append(small.root, entry | {"prefix": "", "documents": 1, "tokens": 0, "sequences": 0})
    return Path(small.root)


def page_of(visitor: Any, recipe: str, snapshot: str) -> str:
    page = visitor.get(f"/ask/look-lineage/{recipe}/{snapshot}")
    assert page.status_code == 200
    return str(page.text)


def spec_of(page: str) -> Any:
    [spec] = re.findall(r'data-spec="([^"]+)"', page)
    return json.loads(html.unescape(spec))


def test_the_drawing_and_the_tables_have_every_manifest(visitor: Any, root: Path) -> None:
    for recipe, snapshot in ((RECIPE, DAYS[1]), (small_build.DATASET, "build")):
        page = page_of(visitor, recipe, snapshot)
        shown = lineage(str(root), version_log.current(str(root), recipe, snapshot))
        spec = spec_of(page)
        assert [point["path"] for point in spec["data"]["values"]] == [node.path for node in shown.nodes]
        assert len(spec["layer"][0]["data"]["values"]) == len(shown.edges)
        assert shown.nodes
        for node in shown.nodes:
            assert f'href="/refinery/manifest/{node.path}"' in page
        links = re.findall(r'href="/refinery(/[^"]+)"', page)
        assert len(links) > len(shown.nodes)
        for link in links:
            assert visitor.get(html.unescape(link)).status_code == 200, link


def test_other_versions_are_named_and_linked(visitor: Any) -> None:
    page = page_of(visitor, RECIPE, DAYS[1])
    assert f'<a href="/refinery/snapshot/small/{DAYS[0]}">small {DAYS[0]}</a>' in page
    build = page_of(visitor, small_build.DATASET, "build")
    assert all(f'href="/refinery/snapshot/small/{day}"' in build for day in DAYS[:2])
    assert f'href="/refinery/ask/look-lineage/small/{DAYS[1]}"' in visitor.get(f"/snapshot/small/{DAYS[1]}").text


def test_a_retracted_snapshot_is_named_with_its_state(
    visitor: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = str(shutil.copytree(root, tmp_path / "root"))
    version_log.retract(copy, RECIPE, DAYS[0])
    monkeypatch.setenv("REFINERY_ROOT", copy)
    page = page_of(visitor, RECIPE, DAYS[1])
    assert 'class="state retracted">' in page
    assert visitor.get(f"/snapshot/small/{DAYS[0]}").status_code == 200
    assert visitor.get(f"/ask/look-lineage/small/{DAYS[0]}").status_code == 404


def test_nothing_of_a_name_runs(visitor: Any) -> None:
    page = visitor.get("/ask/look-lineage/web/%3Cscript%3Ealert(1)%3Cscript%3E").text
    assert_inert(page, SCRIPT)
