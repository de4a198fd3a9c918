"""One tokenizer per dataset: whoever pins first wins, everybody uses it, and another one is refused."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.datasets.tokenizer_pin import pin_path, read_pin, require_pinned
from pipeline_tasks.publish.exports.tokenizer import tokenizer_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.sealed import seal
from pipeline_tasks.store.reading import read_manifest
from tests.chain import reply
from tests.refining import commit_parent, refined

DAYS = {
    "d1": "the ferry leaves the harbor before the fog has lifted",
    "d2": "a baker opens the shop while the street is still dark",
    "d3": "rivers carry sand to the sea and the sea returns it",
    "d4": "nobody heard the old clock strike in the empty hall",
}
TRAIN = {"train": {"vocab_size": 290, "min_bytes": 500}}


def documents(text: str, count: int = 20) -> pa.Table:
    located = {field.name: pa.nulls(count, field.type) for field in LOCATOR}
    ids = [f"{len(text):02x}{rank:030x}" for rank in range(count)]
    texts = [f"{text} {rank}" for rank in range(count)]
    return pa.table({**located, "id": ids, "text": pa.array(texts, pa.large_string())})


def tokenize(root: Path, day: str, params: Mapping[str, Any] | None = None, **fields: Any) -> Manifest:
    """Tokenize a day of the dataset `ours`, as a run does."""
    parent = commit_parent(root, [documents(DAYS[day])], day)
    about = {"root": str(root), "recipe": "ours", "snapshot": day, **fields}
    path = reply("refine", stage="tokenize", params=TRAIN if params is None else params, parent=parent, **about)[
        "manifest"
    ]
    return read_manifest(str(root), path)


def publish(root: Path, manifest: Manifest) -> None:
    """Append a version of the dataset that has the manifest, as a build does after `require_pinned`."""
    require_pinned(str(root), "ours", manifest)
    manifests = {"compose": "compose/x/manifest.json", "tokenize": f"tokenize/{manifest.fingerprint}/manifest.json"}
    entry = {"recipe": "ours", "snapshot": "build", "landing": "", "manifests": manifests, "verdicts": {}}
    sizes = {"prefix": "", "documents": 20, "tokens": 1, "sequences": 0}
    version_log.append(str(root), {**entry, **sizes, "tokenizer": digest(root, manifest)})


def digest(root: Path, manifest: Manifest) -> str:
    return tokenizer_of(str(root), manifest).digest


@pytest.mark.parametrize("order", [*itertools.permutations(DAYS)][::5])
def test_days_in_any_order_have_one_tokenizer(tmp_path: Path, order: Sequence[str]) -> None:
    manifests = {day: tokenize(tmp_path, day) for day in order}
    pin = read_pin(str(tmp_path), "ours")
    assert pin is not None
    assert {digest(tmp_path, manifest) for manifest in manifests.values()} == {pin.digest}
    assert (pin.source, pin.vocab_size) == ("trained", 290)
    assert all(manifest.params["tokenizer"] == f"sha256:{pin.digest}" for manifest in manifests.values())
    for day, manifest in manifests.items():
        assert tokenize(tmp_path, day) == manifest, "the same request gives the same manifest, also of the first day"
        assert require_pinned(str(tmp_path), "ours", manifest) == pin


def test_of_two_first_days_that_race_one_wins(tmp_path: Path) -> None:
    results: dict[str, Manifest] = {}
    threads = [Thread(target=lambda day=day: results.update({day: tokenize(tmp_path, day)})) for day in ("d1", "d2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pin = read_pin(str(tmp_path), "ours")
    assert pin is not None
    assert {digest(tmp_path, manifest) for manifest in results.values()} == {pin.digest}


def test_who_is_late_uses_the_winner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first day looks for a pin before the second one makes it, and pins after it."""
    from pipeline_tasks.service.work import tokenizing

    def late(root: str, recipe: str) -> None:
        monkeypatch.undo()
        tokenize(tmp_path, "d2")

    monkeypatch.setattr(tokenizing, "adopt", late)
    first, second = tokenize(tmp_path, "d1"), tokenize(tmp_path, "d2")
    pin = read_pin(str(tmp_path), "ours")
    assert pin is not None
    assert pin.digest == digest(tmp_path, first) == digest(tmp_path, second)
    alone = refined(tmp_path, "tokenize", commit_parent(tmp_path, [documents(DAYS["d1"])], "d1"), TRAIN)[1]
    assert digest(tmp_path, alone) != pin.digest, "it is that of the second day"


@pytest.mark.parametrize(
    "train",
    [None, {"vocab_size": 290}, {"vocab_size": 8192, "min_bytes": 0}],
    ids=["nothing is said", "too few bytes", "too few words"],
)
def test_a_small_first_build_takes_the_default_tokenizer(tmp_path: Path, train: dict[str, int] | None) -> None:
    params = {"train": train} if train else {}
    first = tokenize(tmp_path, "d1", params)
    pin = read_pin(str(tmp_path), "ours")
    assert pin is not None
    assert (pin.source, pin.bytes, pin.digest) == ("default", 1110, digest(tmp_path, first))
    assert first.rows == 20
    assert digest(tmp_path, tokenize(tmp_path, "d2", TRAIN)) == pin.digest, "a later build has it, with enough text too"
    with pytest.raises(RecipeError, match=re.escape(f"ours in {tmp_path} ")):
        tokenize(tmp_path, "d2", {"tokenizer": named(tmp_path, "d3")})


def test_the_reply_names_the_tokenizer(tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, [documents(DAYS["d1"])], "d1")
    about = {"root": str(tmp_path), "recipe": "ours", "snapshot": "d1"}
    shown = reply("refine", stage="tokenize", params={}, parent=parent, **about)["tokenizer"]
    assert shown == str(read_pin(str(tmp_path), "ours"))


def named(tmp_path: Path, day: str) -> str:
    """Return the path of a file with the tokenizer of another dataset."""
    tokenize(tmp_path, day, recipe="other")
    pin = read_pin(str(tmp_path), "other")
    assert pin is not None
    return str(tmp_path / pin.path)


def test_a_mixture_is_refused_with_the_way_out(tmp_path: Path) -> None:
    other = named(tmp_path, "d2")
    tokenize(tmp_path, "d1")
    for params, asked in (
        ({"tokenizer": other}, f"for `tokenizer: {other}`"),
        ({"train": {"vocab_size": 300, "min_bytes": 0}}, "to train one of 300 entries"),
        ({**TRAIN, "eos": "</s>"}, "for eos '</s>' and bos ''"),
        ({**TRAIN, "bos": "<s>"}, "for eos '' and bos '<s>'"),
    ):
        with pytest.raises(RecipeError, match=re.escape(f"ours in {tmp_path} ")) as refusal:
            tokenize(tmp_path, "d3", params)
        assert f"the recipe asks {asked}" in str(refusal.value)
    assert tokenize(tmp_path, "d3", {"train": {"vocab_size": 290, "bytes": 900, "min_bytes": 10**9}}).rows == 20
    assert tokenize(tmp_path, "d3", {"tokenizer": other}, recipe="new").rows == 20


def test_a_named_tokenizer_is_pinned_and_may_be_named_by_its_content(tmp_path: Path) -> None:
    path = named(tmp_path / "elsewhere", "d2")
    first = tokenize(tmp_path, "d1", {"tokenizer": path})
    copy = tmp_path / "copy.json"
    copy.write_bytes(Path(path).read_bytes())
    assert tokenize(tmp_path, "d1", {"tokenizer": str(copy)}) == first
    with pytest.raises(RecipeError, match=f"ours .*{digest(tmp_path, first)}.* 290 "):
        tokenize(tmp_path, "d3")


def test_a_damaged_pin_is_named_and_can_be_made_anew(tmp_path: Path) -> None:
    first = tokenize(tmp_path, "d1")
    publish(tmp_path, first)
    pin = read_pin(str(tmp_path), "ours")
    assert pin is not None
    for path, damaged in (
        (pin_path("ours"), b""),
        (pin_path("ours"), b"{}"),
        (pin_path("ours"), b"[1]"),
        (pin_path("ours"), seal(pin).replace(b"trained", b"TRAINED")),
        (pin_path("ours"), bytes(range(256))),
        (pin_path("ours"), seal({**json.loads(seal(pin)), "digest": "0" * 64})),
        (pin_path("ours"), seal({**json.loads(seal(pin)), "digest": "../../x"})),
        (pin.path, b"{}"),
        (pin.path, None),
    ):
        whole = (tmp_path / path).read_bytes()
        (tmp_path / path).unlink()
        if damaged is not None:
            (tmp_path / path).write_bytes(damaged)
        for _ in range(2):
            with pytest.raises(ContractError, match=re.escape(f"{tmp_path}/tokenizers/ours/")):
                tokenize(tmp_path, "d2")
        (tmp_path / path).write_bytes(whole)
    (tmp_path / pin_path("ours")).unlink()
    again = tokenize(tmp_path, "d2")
    assert digest(tmp_path, again) == pin.digest
    assert read_pin(str(tmp_path), "ours").source == "published"  # type: ignore[union-attr]
    with pytest.raises(RecipeError, match=re.escape(f"ours in {tmp_path} ") + ".* 300 "):
        tokenize(tmp_path, "d3", {"train": {"vocab_size": 300, "min_bytes": 0}})


def test_another_tokenizer_is_not_published(tmp_path: Path) -> None:
    publish(tmp_path, tokenize(tmp_path, "d1"))
    parent = commit_parent(tmp_path, [documents(DAYS["d2"])], "d2")
    alone = refined(tmp_path, "tokenize", parent, TRAIN)[1]  # as a run that began before there was a pin
    with pytest.raises(ContractError, match=f"tokenize/{alone.fingerprint} .* ours "):
        publish(tmp_path, alone)


def test_status_shows_the_tokenizer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish(tmp_path, tokenize(tmp_path, "d1"))
    pin = read_pin(str(tmp_path), "ours")
    assert pin is not None
    assert main(["status", str(tmp_path)]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == (
        f"tokenizer of ours: trained (SHA-256 {pin.digest[:16]}, 290 entries, trained on 1,110 bytes of text), "
        f"{tmp_path}/{pin.path}"
    )
    assert main(["status", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["tokenizer"] == pin.digest
