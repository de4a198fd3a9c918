"""What a release wrote, this one reads: verified, traced, trained from, recorded anew, and said to be outdated or not."""

import shutil
from pathlib import Path

import pytest

from pipeline_tasks import libraries
from pipeline_tasks.cards import stage_card
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.document.trace import trace, trace_lines
from pipeline_tasks.inspect.verify.verification import verify
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.ledger.rebuilding import rebuild
from pipeline_tasks.libraries import release
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.run.history import Past, read_history
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.training.dataset import TokenDataset
from pipeline_tasks.upkeep.upgrade import outdated_versions
from tests.earlier_root import FOLDER, PAGES, unpack
from tests.small_build import DATASET

ARCHIVES = sorted(FOLDER.glob("*.tar.xz"))


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def earlier(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return unpack(request.param, tmp_path_factory.mktemp("earlier"))


def test_this_release_has_a_root() -> None:
    assert f"{release()}.tar.xz" in [path.name for path in ARCHIVES]
    assert sum(path.stat().st_size for path in ARCHIVES) < 300_000 * len(ARCHIVES)


def test_every_byte_is_as_it_was_written_and_every_record_is_accounted_for(earlier: str) -> None:
    report = verify(earlier)
    assert report.findings.problems == []
    assert {account.recipe for account in report.accounts} == {"corpus", PAGES, "small"}
    assert all(account.balanced for account in report.accounts)


def test_history_of_another_form_is_refused_by_name(earlier: str) -> None:
    declared = stage_card("cut_templates").history
    referred = version_log.current(earlier, PAGES).manifests["cut_templates"]
    saved = read_manifest(earlier, referred)
    if set(saved.history) == set(declared):
        pytest.skip("history has the form of this release")
    with pytest.raises(
        ContractError, match=r"sections lines, and the stage declares line_pages; .*refine that snapshot"
    ):
        read_history(earlier, declared, [Past(referred, saved.fingerprint, "")])


def test_a_token_is_traced_to_its_document(earlier: str) -> None:
    lines = "\n".join(trace_lines(trace(earlier, version_log.current(earlier, DATASET), 1)))
    assert "https://example.org/" in lines


def test_a_model_trains_from_it(earlier: str) -> None:
    dataset = TokenDataset(f"{earlier}/{DATASET}@1")
    items = list(dataset)
    version = version_log.current(earlier, DATASET)
    assert len(items) == dataset.places == version.sequences > 0


def test_its_ledger_is_opened_and_made_anew(earlier: str, tmp_path: Path) -> None:
    root = shutil.copytree(earlier, tmp_path / "root")
    with Ledger.open(ledger_of(str(root))) as ledger:
        opened = ledger.query("versions")
    (root / "ledger.sqlite").unlink()
    rebuilt = rebuild(str(root), ledger_of(str(root)))
    assert rebuilt.missing == []
    with Ledger.open(ledger_of(str(root))) as ledger:
        assert [(row["recipe"], row["number"]) for row in ledger.query("versions")] == [
            (row["recipe"], row["number"]) for row in opened
        ]


def test_what_this_release_has_by_other_libraries_is_outdated_and_nothing_before_it(
    earlier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the libraries that wrote it, no library is a reason; with another phonenumbers, scrubbing is."""
    written: dict[str, str] = {}
    for version in (*version_log.versions(earlier, PAGES), *version_log.versions(earlier, DATASET)):
        for referred in version.manifests.values():
            written |= read_manifest(earlier, referred).libraries
    assert {"ftfy", "phonenumbers", "tokenizers", "unicode"} < written.keys()
    known = libraries._version
    monkeypatch.setattr(libraries, "_version", lambda name: written.get(name) or known(name))
    same = outdated_versions(earlier)
    assert len(same) == 4
    assert all(not each.unreadable for each in same)
    of_libraries = [why for each in same for why in each.reasons if any(f"{name} " in why for name in written)]
    assert of_libraries == []
    written["phonenumbers"] = "0.0.1"
    (pages,) = outdated_versions(earlier, PAGES)
    assert [stage.stage for stage in pages.stages if any("phonenumbers" in why for why in stage.reasons)] == [
        "scrub_pii"
    ]
    assert {"filter_url", "enrich"} < {stage.stage for stage in pages.stages}
    assert not {"land", "ingest"} & {stage.stage for stage in pages.stages if not stage.reasons}
