"""A takedown and an erasure are no false alarm for who keeps a statement: it says what was erased, and what was not."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from refinery_rights.disclose.about import About
from refinery_rights.disclose.facts import collected
from refinery_rights.disclose.summary import summary
from refinery_rights.statements.keys import public_key
from refinery_rights.verify.statements import Checked, check_statement, statement_conclusion

from pipeline_tasks.cli.main import main
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.erasures import erased_by_path
from tests import erased_root
from tests.erased_root import DATASET, DAYS, RECIPE, ErasedRoot, address
from tests.upkeep.test_retention import KINDS, age, write_policy

pytestmark = pytest.mark.slow


@pytest.fixture
def made(tmp_path: Path) -> ErasedRoot:
    return erased_root.make(tmp_path)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    secret = Ed25519PrivateKey.generate()
    (tmp_path / "key.pem").write_bytes(secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = secret.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pub").write_bytes(public)
    return tmp_path / "key.pem"


def signed(made: ErasedRoot, key: Path, *chosen: str) -> Path:
    out = key.with_name(f"{chosen[-1]}.json")
    assert main(["keep", "sign", made.root, *chosen, "--key", str(key), "--out", str(out)]) == 0
    return out


def checked(made: ErasedRoot, key: Path, statement: Path) -> Checked:
    return check_statement(made.root, str(statement), public_key(str(key.with_suffix(".pub"))), full=True)


def test_a_statement_says_what_was_taken_down_and_erased_since(made: ErasedRoot, key: Path) -> None:
    statements = [
        signed(made, key, "--recipe", RECIPE, "--version", DAYS[0]),
        signed(made, key, "--recipe", RECIPE, "--version", DAYS[1]),
        signed(made, key, "--dataset", DATASET),
    ]
    assert main(["takedown", made.root, "--url", address(0, 5), "--reason", "a letter"]) == 0
    for statement in statements:
        after = checked(made, key, statement)
        assert after.findings.problems == []
        assert any("1 entry of the log of takedowns" in note for note in after.findings.notes)
    assert main(["erase", made.root, "--by", "a test"]) == 0
    first, second, built = (checked(made, key, statement) for statement in statements)
    for each in (first, second, built):
        assert each.findings.problems == []
    assert any("by an erasure since it was signed" in note for note in first.findings.notes)
    assert any("by an erasure since it was signed" in note for note in built.findings.notes)
    assert "erased since" in statement_conclusion(first)
    assert not any("by an erasure since" in note for note in second.findings.notes)
    assert "erased since" not in statement_conclusion(second)


def test_a_statement_says_what_has_expired_since(made: ErasedRoot, key: Path, tmp_path: Path) -> None:
    older, newer = (signed(made, key, "--recipe", RECIPE, "--version", day) for day in DAYS)
    age(made.root)
    policy = write_policy(tmp_path, KINDS)
    assert main(["keep", "retention", made.root, "--policy", policy, "--apply"]) == 0
    first, second = checked(made, key, older), checked(made, key, newer)
    assert first.findings.problems == second.findings.problems == []
    assert any("expired since it was signed, by the retention policy mine" in note for note in first.findings.notes)
    assert "but for what has expired since" in statement_conclusion(first)
    assert "expired" not in statement_conclusion(second)


def test_a_disclosure_says_how_many_rows_were_erased(made: ErasedRoot) -> None:
    assert main(["takedown", made.root, "--url", address(0, 5), "--reason", "a letter"]) == 0
    assert main(["erase", made.root, "--by", "a test"]) == 0
    for version in (version_log.versions(made.root, RECIPE)[0], version_log.versions(made.root, DATASET)[0]):
        with collected(made.root, version, About()) as facts:
            assert facts.erased == 1
            assert facts.takedowns == 1
            assert any("1 row of these documents" in line for line in summary(facts).lead)


def test_what_came_in_the_place_of_an_erased_file_is_compared_too(made: ErasedRoot, key: Path) -> None:
    statement = signed(made, key, "--dataset", DATASET)
    assert main(["takedown", made.root, "--url", address(0, 5), "--reason", "a letter"]) == 0
    assert main(["erase", made.root, "--by", "a test"]) == 0
    after = next(
        found.after
        for path, found in sorted(erased_by_path(made.root).items())
        if path.endswith(".bin") and found.after is not None
    )
    file = Path(made.root, after.path)
    file.write_bytes(bytes(after.bytes))
    [problem] = checked(made, key, statement).findings.problems
    assert after.path in problem.object
