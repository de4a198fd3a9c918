"""Pages that two sandboxes extract give the results of one, also where a page ends a child."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pipeline_tasks.text.page import sandbox_pair
from pipeline_tasks.text.page.sandbox import seconds_spent
from pipeline_tasks.text.page.sandbox_messages import Limits, Page, Result
from pipeline_tasks.text.page.sandbox_pair import SandboxPair, has_idle_processor

LIMITS = Limits(memory=400 << 20)
GIANT = b"<b>" * 9_000_000
"""A page that no child survives within these limits."""


def html(at: int) -> bytes:
    return f"<html><p>Page {at} has words, and more words after them.</p><!--{'x' * 20_000}--></html>".encode()


PAGES = [Page(html(at), "text/html") for at in range(300)]


def extracted(pages: list[Page], *, helped: bool, method: str = "resiliparse") -> tuple[list[Result], int]:
    """Return the results of pages, and how many children there were at the end."""
    pair = SandboxPair(LIMITS, lambda: helped)
    try:
        results = list(pair.process(method, pages))
        return [result._replace(text=bytes(result.text)) for result in results], len(pair.children)
    finally:
        pair.close()


def test_two_sandboxes_give_what_one_gives() -> None:
    alone, one = extracted(PAGES, helped=False)
    helped, two = extracted(PAGES, helped=True)
    assert (one, two) == (1, 2)
    assert helped == alone
    assert [result.text.split()[1] for result in helped] == [str(at).encode() for at in range(300)]


@pytest.mark.parametrize("at", [0, 40, 150, 199, 299])
def test_a_page_that_ends_a_child_costs_itself_alone(at: int) -> None:
    pages = [*PAGES[:at], Page(GIANT, "text/html"), *PAGES[at + 1 :]]
    results, _ = extracted(pages, helped=True)
    assert [rank for rank, result in enumerate(results) if result.outcome != "done"] == [at]
    assert results == extracted(pages, helped=False)[0]


def test_pages_that_end_both_children_in_one_window() -> None:
    pages = [Page(b"<b>" * 3_000_000 if at in (201, 299) else page.body, "text/html") for at, page in enumerate(PAGES)]
    limits = Limits(memory=250 << 20)
    outcomes = []
    for helped in (False, True):
        pair = SandboxPair(limits, lambda helped=helped: helped)  # type: ignore[misc]
        outcomes.append([result.outcome for result in pair.process("resiliparse", pages)])
        pair.close()
    assert outcomes[0] == outcomes[1]
    assert [at for at, outcome in enumerate(outcomes[0]) if outcome != "done"] == [201, 299]


def test_a_child_that_reads_pages_by_resiliparse_is_without_the_libraries_of_files() -> None:
    """numpy and pyarrow take 200 MB of address space, which the limit of memory counts."""
    asked = (
        "import sys; from pipeline_tasks.text.page import sandbox_child; sandbox_child.load('resiliparse', '')\n"
        "sys.exit(','.join({'numpy', 'pyarrow', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", asked], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (1, b"\n")


def test_a_small_window_is_not_divided() -> None:
    assert extracted(PAGES[:10], helped=True)[1] == 1
    assert extracted([Page(html(0) * 20, "text/html")], helped=True)[1] == 1


def test_both_children_are_paid_for() -> None:
    before = seconds_spent()
    alone = extracted(PAGES, helped=False, method="trafilatura")
    one = seconds_spent() - before
    helped = extracted(PAGES, helped=True, method="trafilatura")
    both = seconds_spent() - before - one
    assert alone[0] == helped[0]
    assert one * 0.5 < both < one * 4


@pytest.fixture
def busy_threads() -> Iterator[None]:
    """Let as many processes run as there are processors, and wait until they do."""
    command = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
    loops = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in os.sched_getaffinity(0)]
    begun = [loop.stdout.readline() for loop in loops if loop.stdout]
    yield
    for loop in loops:
        loop.kill()
        loop.communicate()
    assert begun == [b"\n"] * len(loops)


@pytest.mark.usefixtures("busy_threads")
def test_a_busy_machine_has_no_idle_processor() -> None:
    assert [has_idle_processor() for _ in range(20)] == [False] * 20


def test_one_processor_is_never_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert not has_idle_processor()


def test_a_quota_of_one_processor_leaves_none_idle(monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]) -> None:
    quota = sandbox_pair.Path(tmp_path, "cpu.max")
    quota.write_text("100000 100000\n")
    monkeypatch.setattr(sandbox_pair, "_QUOTA", quota)
    assert not has_idle_processor()
