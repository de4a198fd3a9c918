"""A version is signed, and its statement finds what the root alone does not show: a log that was written anew."""

import base64
import dataclasses
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from refinery_rights.disclose import disclose
from refinery_rights.disclose.about import About
from refinery_rights.statements.envelope import open_envelope, pae, sign
from refinery_rights.statements.keys import KEY_VARIABLE, PASSWORD_VARIABLE, private_key, public_key
from refinery_rights.statements.statement import Signed, read_statement, statement_of
from refinery_rights.verify.statements import check_statement

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, RecipeError, SignatureRefused
from pipeline_tasks.gate.verdicts import judge, verdict_reference
from pipeline_tasks.inspect.verify.verification import verify
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.publish.datasets.published_shards import named_files
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store import storage
from pipeline_tasks.store.log_chain import append, dataset_log, read_chain
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests import small_build
from tests.small_root import DAYS, RECIPE, SmallRoot, refine

Key = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey

SECRETS: dict[str, Callable[[], Any]] = {
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
}


def pem(key: Any, password: bytes = b"") -> bytes:
    protection = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection)


def public_pem(key: Any) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """The files of a private key and of its public one."""
    key = ed25519.Ed25519PrivateKey.generate()
    private, public = tmp_path / "key.pem", tmp_path / "key.pub"
    private.write_bytes(pem(key))
    public.write_bytes(public_pem(key))
    return private, public


@pytest.fixture
def small(small_root: SmallRoot, tmp_path: Path) -> SmallRoot:
    return small_build.copied(small_root, tmp_path)


def signed(root: str, keys: tuple[Path, Path], *chosen: str) -> Path:
    out = keys[0].with_name(f"statement-{len(list(keys[0].parent.glob('statement-*')))}.json")
    assert main(["keep", "sign", root, *chosen, "--key", str(keys[0]), "--out", str(out)]) == 0
    return out


def problems(root: str, statement: Path, keys: tuple[Path, Path], *, full: bool = True) -> list[str]:
    checked = check_statement(root, str(statement), public_key(str(keys[1])), full=full)
    return [str(problem) for problem in checked.findings.problems]


def notes(root: str, statement: Path, keys: tuple[Path, Path]) -> list[str]:
    return check_statement(root, str(statement), public_key(str(keys[1])), full=True).findings.notes


# --- Envelopes ------------------------------------------------------------------------------------------------------

VECTOR = ("http://example.com/HelloWorld", b"hello world")
VECTOR_KEY = 97358161215184420915383655311931858321456579547487070936769975997791359926199
VECTOR_SIGNATURE = "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="
"""The example of the DSSE protocol: its key signs by RFC 6979, and r and s are written one after the other."""


def test_the_bytes_that_are_signed_are_those_of_the_protocols_example() -> None:
    assert pae(*VECTOR) == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    key = ec.derive_private_key(VECTOR_KEY, ec.SECP256R1())
    envelope = json.loads(sign(VECTOR[1], VECTOR[0], key))
    assert (envelope["payloadType"], envelope["payload"]) == (VECTOR[0], "aGVsbG8gd29ybGQ=")
    r, s = decode_dss_signature(base64.b64decode(envelope["signatures"][0]["sig"]))
    assert base64.b64encode(r.to_bytes(32, "big") + s.to_bytes(32, "big")).decode() == VECTOR_SIGNATURE


def test_the_example_of_the_protocol_is_opened() -> None:
    key = ec.derive_private_key(VECTOR_KEY, ec.SECP256R1()).public_key()
    raw = base64.b64decode(VECTOR_SIGNATURE)
    der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        envelope = {
            "payload": encode(VECTOR[1]).decode(),
            "payloadType": VECTOR[0],
            "signatures": [{"sig": encode(der).decode()}],
        }
        assert open_envelope(json.dumps(envelope).encode(), key, "example").payload == VECTOR[1]


@pytest.mark.parametrize("kind", SECRETS)
def test_an_envelope_holds_for_its_key_alone_and_for_its_bytes_alone(kind: str) -> None:
    key, other = SECRETS[kind](), SECRETS[kind]()
    envelope = sign(b"a payload", "text/x", key)
    assert sign(b"a payload", "text/x", key) == envelope
    assert open_envelope(envelope, key.public_key(), "it").payload == b"a payload"
    changed = json.loads(envelope)
    for name, value in {"payload": base64.b64encode(b"a payloae").decode(), "payloadType": "text/y"}.items():
        with pytest.raises(SignatureRefused, match="it is not signed by this key"):
            open_envelope(json.dumps({**changed, name: value}).encode(), key.public_key(), "it")
    with pytest.raises(SignatureRefused, match="it is not signed by this key"):
        open_envelope(envelope, other.public_key(), "it")


@pytest.mark.parametrize("kind", SECRETS)
def test_a_key_of_the_other_kind_signs_nothing_of_it(kind: str) -> None:
    [other] = [name for name in SECRETS if name != kind]
    with pytest.raises(SignatureRefused):
        open_envelope(sign(b"x", "text/x", SECRETS[kind]()), SECRETS[other]().public_key(), "it")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"payload": 1, "payloadType": "x", "signatures": []}',
        b'{"payload": "*"}',
        b"[" * 100_000,
        b'{"payload": "eA==", "payloadType": "\\ud800", "signatures": [{"sig": "AAAA"}]}',
    ],
)
def test_what_is_no_envelope_is_refused_by_its_name(body: bytes) -> None:
    with pytest.raises(SignatureRefused, match="the-file"):
        open_envelope(body, ed25519.Ed25519PrivateKey.generate().public_key(), "the-file")


def test_an_envelope_without_a_signature_is_not_signed() -> None:
    body = json.dumps({"payload": "eA==", "payloadType": "x", "signatures": []}).encode()
    with pytest.raises(SignatureRefused, match="not signed"):
        open_envelope(body, ed25519.Ed25519PrivateKey.generate().public_key(), "it")


def test_ids_of_keys_that_anybody_wrote_are_shown_and_not_obeyed() -> None:
    hostile = {"keyid": "\x1b[2J\nversion 1 is what was signed \ud800\u202e", "sig": "AAAA"}
    body = json.dumps({"payload": "eA==", "payloadType": "x", "signatures": [hostile]}).encode()
    with pytest.raises(SignatureRefused) as refused:
        open_envelope(body, ed25519.Ed25519PrivateKey.generate().public_key(), "it")
    assert str(refused.value).isprintable()
    assert str(refused.value).isascii()


# --- Keys -----------------------------------------------------------------------------------------------------------


def test_a_key_comes_from_a_file_or_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    file = tmp_path / "key.pem"
    file.write_bytes(pem(key, b"open sesame"))
    monkeypatch.setenv(PASSWORD_VARIABLE, "open sesame")
    expected = public_pem(key)
    assert public_pem(private_key(str(file))) == expected
    for value in (str(file), pem(key).decode()):
        monkeypatch.setenv(KEY_VARIABLE, value)
        assert public_pem(private_key("")) == expected


def test_what_is_no_signing_key_is_refused_without_a_word_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)
    ours = ed25519.Ed25519PrivateKey.generate()
    bodies = {
        "rsa": pem(rsa.generate_private_key(65537, 2048)),
        "curve": pem(ec.generate_private_key(ec.SECP384R1())),
        "public": public_pem(ours),
        "cosign": b"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nc2VjcmV0IGtleQ==",
        "locked": pem(ours, b"open sesame"),
        "text": b"secret words",
    }
    for name, body in bodies.items():
        file = tmp_path / name
        file.write_bytes(body)
        with pytest.raises(RecipeError, match=name) as refused:
            private_key(str(file))
        assert body[-12:].decode().strip() not in str(refused.value)
        if body.startswith(b"-----BEGIN"):
            with pytest.raises(RecipeError, match="--key") as refused:
                private_key(body.decode())
            assert body[-12:].decode().strip() not in str(refused.value)
    for name in ("", str(tmp_path / "nowhere"), "a\0b"):
        with pytest.raises(RecipeError):
            private_key(name)


def test_a_private_key_is_not_taken_for_the_public_one(keys: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="private key"):
        public_key(str(keys[0]))
    (tmp_path / "other").write_bytes(public_pem(rsa.generate_private_key(65537, 2048)))
    with pytest.raises(RecipeError, match="another kind"):
        public_key(str(tmp_path / "other"))


# --- Statements of versions -----------------------------------------------------------------------------------------


def test_a_snapshots_statement_names_what_is_read_and_what_it_was_made_from(small: SmallRoot) -> None:
    version = version_log.current(small.root, RECIPE, DAYS[1])
    statement = statement_of(small.root, version)
    assert statement == statement_of(small.root, version)
    said = read_statement(statement, "it")
    assert (said.recipe, said.snapshot, said.number) == (RECIPE, DAYS[1], version.number)
    assert {file.path for file in version.files} < {each["name"] for each in said.subjects}
    assert any(each["name"].endswith(".parquet") for each in said.subjects)
    made_from = {each["name"]: each for each in said.dependencies}
    assert {f"landing:{DAYS[1]}/a.jsonl", f"landing:{DAYS[1]}/b.jsonl", f"recipe/{RECIPE}"} <= made_from.keys()
    assert {each["annotations"]["gate"] for each in said.byproducts if "gate" in each["annotations"]} == {
        gate for gate, referred in version.verdicts.items() if referred
    }
    assert small.root not in json.dumps(statement), "where a root is, is nobody else's business"


def let_pass(root: str, why: str) -> Version:
    """Publish a snapshot again with a gate that refused it and was overridden."""
    version = version_log.current(root, RECIPE, DAYS[1])
    bounds = {"retention": {"critical": {"max_value": 0.01}}}
    verdict = judge(root, version.manifests["extract"], bounds=bounds, override=why)
    fields = {each.name: getattr(version, each.name) for each in dataclasses.fields(version)}
    verdicts = {**version.verdicts, "extract": verdict_reference(verdict)}
    return version_log.append(root, {**fields, "verdicts": verdicts})


def test_what_a_person_let_pass_is_signed_with_the_reason(
    small: SmallRoot, keys: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    version = let_pass(small.root, "the pages are right")
    said = read_statement(statement_of(small.root, version), "it")
    reasons = {
        each["annotations"]["gate"]: each["annotations"]["override"]
        for each in said.byproducts
        if "override" in each["annotations"]
    }
    assert reasons == {"extract": "the pages are right"}
    statement = signed(small.root, keys)
    assert "the pages are right" in capsys.readouterr().out
    assert problems(small.root, statement, keys) == []


def test_the_subjects_alone_are_enough_to_read_every_document(small: SmallRoot, tmp_path: Path) -> None:
    version = version_log.current(small.root, RECIPE, DAYS[0])
    shards = read_manifest(small.root, version.refined).shards
    assert any(shard.below for shard in shards), "the documents are layers"
    for subject in _said(small.root, DAYS[0]).subjects:
        copy = tmp_path / "copy" / subject["name"]
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(small.root, subject["name"]), copy)
    read = [batch.to_pylist() for batch in read_shards(str(tmp_path / "copy"), shards)]
    assert read == [batch.to_pylist() for batch in read_shards(small.root, shards)]


def test_a_change_of_any_subject_is_found(small: SmallRoot, keys: tuple[Path, Path]) -> None:
    statement = signed(small.root, keys, "--version", DAYS[0])
    assert problems(small.root, statement, keys) == []
    for subject in _said(small.root, DAYS[0]).subjects:
        path = Path(small.root, subject["name"])
        body = path.read_bytes()
        path.write_bytes(body[:-1] + bytes([body[-1] ^ 1]))
        [problem] = problems(small.root, statement, keys)
        assert subject["name"] in problem
        path.unlink()
        assert subject["name"] in " ".join(problems(small.root, statement, keys, full=False))
        path.write_bytes(body)


def _said(root: str, snapshot: str) -> Signed:
    return read_statement(statement_of(root, version_log.current(root, RECIPE, snapshot)), "it")


def test_a_datasets_statement_reaches_the_landed_files_of_its_snapshots(
    small: SmallRoot, keys: tuple[Path, Path]
) -> None:
    small_build.build(small, judged=True)
    statement = signed(small.root, keys, "--dataset", small_build.DATASET)
    assert problems(small.root, statement, keys) == []
    version = version_log.current(small.root, small_build.DATASET)
    said = read_statement(statement_of(small.root, version), "it")
    assert {each["name"] for each in said.subjects} == {file.path for file in named_files(small.root, version)}
    names = {each["name"] for each in said.dependencies}
    assert {f"landing:{day}/a.jsonl" for day in DAYS[:2]} <= names
    assert {f"recipe/{RECIPE}", f"recipe/{small_build.DATASET}", "file/tokenize.tokenizer"} <= names
    assert {each["annotations"]["log"] for each in said.entries} == {
        f"datasets/{small_build.DATASET}",
        f"datasets/{RECIPE}",
    }


def test_a_dataset_of_a_snapshot_that_was_retracted_since_says_so(
    small: SmallRoot, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    small_build.build(small, judged=True)
    statement = signed(small.root, keys, "--dataset", small_build.DATASET)
    assert notes(small.root, statement, keys) == []
    with Ledger.open(ledger_of(small.root)) as ledger:
        ledger.record_retraction(version_log.retract(small.root, RECIPE, DAYS[0], "spam"))
    [note] = notes(small.root, statement, keys)
    assert "retracted" in note
    disclose(small.root, version_log.current(small.root, small_build.DATASET), About(), tmp_path / "out")
    lead = json.loads((tmp_path / "out" / "summary.json").read_text())["lead"]
    assert [line for line in lead if DAYS[0] in line and "spam" in line] != []


def test_a_log_that_was_written_anew_is_found_by_the_statement_alone(
    small: SmallRoot, keys: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever can write to the root makes another chain of other manifests, heads, pages and ledger, all consistent."""
    statement = signed(small.root, keys, "--version", DAYS[1])
    number = version_log.current(small.root, RECIPE, DAYS[1]).number
    _write_anew(small.root)
    assert verify(small.root).findings.problems == []
    [problem, *_] = problems(small.root, statement, keys)
    assert f"version {number} of recipe {RECIPE}" in problem
    assert "written anew" in problem
    arguments = ["verify", small.root, "--signature", str(statement), "--key", str(keys[1])]
    assert main(arguments) == ContractError.exit_code
    assert f"version {number} of recipe {RECIPE}" in capsys.readouterr().out


def _write_anew(root: str) -> None:
    """Write the log of the recipe again with another landing in each entry, and all that follows from that."""
    log = dataset_log(RECIPE)
    entries = [dict(entry.fields) for entry in read_chain(root, log)]
    shutil.rmtree(Path(root, log.folder))
    for entry in entries:
        fields = {name: value for name, value in entry.items() if name not in ("number", "recipe")}
        changed = fields | ({"at": "2026-01-01T00:00:00.000000+00:00"} if "manifests" in fields else {})
        assert append(root, log, read_chain(root, log), changed)
    Path(ledger_of(root)).unlink()
    assert main(["keep", "ledger", root]) == 0


def test_a_log_that_was_cut_is_found(small: SmallRoot, keys: tuple[Path, Path]) -> None:
    last = read_chain(small.root, dataset_log(RECIPE))[-1]
    statement = signed(small.root, keys, "--version", DAYS[1])
    for path in (dataset_log(RECIPE).entry_path(last.number), dataset_log(RECIPE).head_path(last.number)):
        Path(small.root, path).unlink()
    Path(ledger_of(small.root)).unlink()
    assert verify(small.root).findings.problems == []
    [problem] = problems(small.root, statement, keys)
    assert f"version {last.number} of recipe {RECIPE}" in problem
    assert "it was cut" in problem


def test_a_log_that_grows_stays_what_was_signed(small: SmallRoot, keys: tuple[Path, Path]) -> None:
    statement = signed(small.root, keys, "--version", DAYS[0])
    assert notes(small.root, statement, keys) == []
    with Ledger.open(ledger_of(small.root)) as ledger:
        ledger.record_retraction(version_log.retract(small.root, RECIPE, DAYS[0], "spam"))
    assert problems(small.root, statement, keys) == []
    [note] = notes(small.root, statement, keys)
    assert "retracted" in note
    assert "spam" in note


def test_a_vacuum_takes_nothing_that_was_signed(small: SmallRoot, keys: tuple[Path, Path]) -> None:
    statement = signed(small.root, keys, "--version", DAYS[0])
    assert main(["keep", "vacuum", small.root, "--delete"]) == 0
    assert problems(small.root, statement, keys) == []


def test_landed_files_are_compared_where_they_are_and_may_be_gone(
    small: SmallRoot, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    landing = Path(shutil.copytree(small.landing, tmp_path / "landing"))
    moved = replace(small, root=str(tmp_path / "other"), landing=landing)
    refine(moved, DAYS[0])
    statement = signed(moved.root, keys)
    assert problems(moved.root, statement, keys) == []
    file = landing / DAYS[0] / "a.jsonl"
    file.write_bytes(file.read_bytes().replace(b"word", b"ward", 1))
    [problem] = problems(moved.root, statement, keys)
    assert "a.jsonl" in problem
    file.unlink()
    assert problems(moved.root, statement, keys) == []
    assert any("a.jsonl" in note for note in notes(moved.root, statement, keys))


def test_a_damaged_version_is_not_signed(small: SmallRoot, keys: tuple[Path, Path]) -> None:
    version = version_log.current(small.root, RECIPE, DAYS[0])
    Path(small.root, version.files[0].path).write_bytes(b"other bytes")
    out = keys[0].with_name("it.json")
    assert main(["keep", "sign", small.root, "--version", DAYS[0], "--key", str(keys[0]), "--out", str(out)]) == 65
    assert not out.exists()


def test_a_statement_is_not_replaced_and_not_written_into_the_root(
    small: SmallRoot, keys: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    out = signed(small.root, keys)
    (keys[0].parent / "link").symlink_to(small.root)
    linked = str(keys[0].parent / "link" / "it.json")
    for place in (str(out), f"{small.root}/it.json", linked, str(keys[0].parent / "no" / "folder")):
        assert main(["keep", "sign", small.root, "--key", str(keys[0]), "--out", place]) == RecipeError.exit_code
        assert place in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--signature"], ["--key"]])
def test_statement_and_key_go_together(given: list[str], small: SmallRoot) -> None:
    assert main(["verify", small.root, *given, "a-file"]) == RecipeError.exit_code


STATED = "application/vnd.in-toto+json"


def _with_entry(statement: dict[str, Any], annotations: dict[str, Any]) -> dict[str, Any]:
    """A statement that names an entry of a log by something else than its number."""
    changed: dict[str, Any] = json.loads(json.dumps(statement))
    changed["predicate"]["runDetails"]["byproducts"][-1]["annotations"] = annotations
    return changed


def _without_entries(statement: dict[str, Any]) -> dict[str, Any]:
    """A statement that names nothing of a log, so that no log can disagree with it."""
    changed: dict[str, Any] = json.loads(json.dumps(statement))
    changed["predicate"]["runDetails"]["byproducts"] = []
    return changed


def test_what_is_signed_and_no_statement_of_a_version_is_refused(small: SmallRoot, keys: tuple[Path, Path]) -> None:
    key, file = private_key(str(keys[0])), keys[0].with_name("it.json")
    whole = statement_of(small.root, version_log.current(small.root, RECIPE))
    others = [
        (b"{}", STATED, ContractError),
        (json.dumps({**whole, "predicateType": "x"}).encode(), STATED, ContractError),
        (json.dumps({**whole, "subject": [{"name": "x"}]}).encode(), STATED, ContractError),
        (json.dumps({**whole, "subject": [{**whole["subject"][0], "annotations": 5}]}).encode(), STATED, ContractError),
        (json.dumps(_with_entry(whole, {"log": "datasets/small"})).encode(), STATED, ContractError),
        (json.dumps(_with_entry(whole, {"log": "datasets/small", "number": 1e999})).encode(), STATED, ContractError),
        (json.dumps({**whole, "subject": []}).encode(), STATED, ContractError),
        (json.dumps(_without_entries(whole)).encode(), STATED, ContractError),
        (b"no JSON", STATED, ContractError),
        (json.dumps(whole).encode(), "text/plain", SignatureRefused),
    ]
    for body, kind, error in others:
        file.write_bytes(sign(body, kind, key))
        with pytest.raises(error, match=r"it\.json"):
            check_statement(small.root, str(file), public_key(str(keys[1])), full=False)


@pytest.mark.slow
def test_a_version_on_s3_is_signed_and_disclosed(
    small_root: SmallRoot, s3_root: str, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    refine(replace(small_root, root=s3_root), DAYS[0])
    statement = signed(s3_root, keys)
    assert problems(s3_root, statement, keys) == []
    assert main(["disclose", s3_root, "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "summary.md").exists()
    subject = _said(s3_root, DAYS[0]).subjects[0]
    store = storage.connect(s3_root)
    store.delete(subject["name"])
    [problem] = problems(s3_root, statement, keys, full=False)
    assert subject["name"] in problem
