"""Two commands make documents of a crawl that was never on this machine."""

import json
from pathlib import Path

import pytest

from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.training.dataset import TokenDataset
from tests.archives import PAGE, http, response, zipped
from tests.commands import Refinery
from tests.crawl_mirror import CRAWL, Fault, Mirror

pytestmark = pytest.mark.slow

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {min_chars: 20}
run: {partitions: 1}
gates: {}
"""


BUILD = """
name: small_corpus
versions: {recipe: small}
stages:
  tokenize: {}
  select: {}
  mix: {}
  shuffle: {buckets: 1}
  pack: {length: 64}
gates: {}
"""


def pages(number: int) -> bytes:
    records = [
        response(
            f"https://example.org/{number}/{at}", http(PAGE.replace(b"sentence", b"sentence %d-%d" % (number, at)))
        )
        for at in range(20)
    ]
    return b"".join(zipped(records))


def documents(refinery: Refinery, landing: Path, root: Path, recipe: Path) -> int:
    recipe.write_text(RECIPE)
    done = refinery("run", "--input", landing, "--output", root, "--recipe", recipe, "--engine", "local")
    assert done.returncode == 0, done.stderr
    return version_log.current(str(root), "small", CRAWL).documents


def test_a_crawl_is_pulled_and_refined_by_two_commands(tmp_path: Path, mirror: Mirror, refinery: Refinery) -> None:
    mirror.add({f"part-{number}.warc.gz": pages(number) for number in range(3)})
    mirror.files["/collinfo.json"] = json.dumps([{"id": CRAWL}]).encode()
    landing, root, recipe = tmp_path / CRAWL, tmp_path / "root", tmp_path / "small.yaml"
    to = tmp_path / "{crawl}"
    words = ["pull", "cc", "--crawl", "latest", "--from", mirror.address, "--to", to, "--rate", "1000"]
    planned = refinery(*words, "--dry-run", "--json")
    assert planned.returncode == 0, planned.stderr
    plan = json.loads(planned.stdout)
    assert (plan["files"], plan["complete"]) == (3, 0)
    assert abs(plan["bytes"] - sum(len(pages(number)) for number in range(3))) <= 3
    assert mirror.data() == []
    assert not landing.exists()
    broken = mirror.fault
    mirror.fault = lambda asked: Fault(403) if asked.is_data else None
    assert refinery(*words).returncode == 78
    assert refinery("run", "--input", landing, "--output", root).returncode == 75  # it has not landed whole
    mirror.fault = broken
    done = refinery(*words, "--again", "--json")
    assert json.loads(done.stdout)["files"] == 3
    assert documents(refinery, landing, root, recipe) == 60
    assert refinery(*words).stdout.startswith(f"{CRAWL} has landed whole")


def test_two_commands_end_with_packed_tokens(tmp_path: Path, mirror: Mirror, refinery: Refinery) -> None:
    mirror.add({f"part-{number}.warc.gz": pages(number) for number in range(20)})
    landing, root, build = tmp_path / CRAWL, tmp_path / "root", tmp_path / "corpus.yaml"
    words = ["pull", "cc", "--crawl", CRAWL, "--from", mirror.address, "--to", landing, "--rate", "1000"]
    done = refinery(*words, "--sample", "0.3", "--json")
    files = json.loads(done.stdout)["files"]
    assert 0 < files < 20
    (tmp_path / "small.yaml").write_text(RECIPE.replace("run:", "  dedup_exact: {}\nrun:"))
    build.write_text(BUILD)
    words = ["run", "--input", landing, "--output", root, "--recipe", tmp_path / "small.yaml", "--build", build]
    done = refinery(*words, "--engine", "local")
    assert done.returncode == 0, done.stderr
    tokens = sum(item["n_tokens"] for item in TokenDataset(f"{root}/small_corpus@latest"))
    assert tokens > 20 * files * 20  # pages of at least so many words


def test_a_plan_without_sizes_says_that_it_estimates(tmp_path: Path, mirror: Mirror, refinery: Refinery) -> None:
    mirror.add({f"part-{number}.warc.gz": pages(number) for number in range(2)})
    mirror.fault = lambda asked: Fault(500) if asked.method == "HEAD" else None
    words = ["pull", "cc", "--crawl", CRAWL, "--from", mirror.address, "--to", tmp_path / "landing", "--rate", "1000"]
    done = refinery(*words, "--dry-run")
    assert done.returncode == 0
    assert "about 2.0 GB (by the size that such files usually have)" in done.stdout


def test_real_archives_arrive_and_are_refined(
    tmp_path: Path, mirror: Mirror, refinery: Refinery, shared_data: Path
) -> None:
    folder = shared_data / "snapshots" / "dev-2026-45"
    mirror.add({file.name: file.read_bytes() for file in sorted(folder.glob("*-open-*.warc.gz"))})
    mirror.fault = lambda asked: Fault(drop_after=3_000_000) if asked.is_data and not asked.start else None
    landing = tmp_path / "landing"
    words = ["pull", "cc", "--crawl", CRAWL, "--from", mirror.address, "--to", landing, "--rate", "1000"]
    assert refinery(*words).returncode == 0
    assert sum(asked.start > 2_900_000 for asked in mirror.data()) == 2
    assert documents(refinery, landing, tmp_path / "root", tmp_path / "small.yaml") > 500
