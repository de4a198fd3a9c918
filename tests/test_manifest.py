"""Manifests are read only when they are whole, are the same bytes for the same facts, and add up exactly."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.constraints import OMITTED
from pipeline_tasks.errors import ContractError, DigestMismatch
from pipeline_tasks.manifest import Manifest, dump, fingerprint_of, folded, identified, load, schema_pairs, total
from pipeline_tasks.profiles.bins import octave_bins
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.profiles.merging import merge, quantile
from pipeline_tasks.run.tasks.task import load_receipt
from pipeline_tasks.sealed import canonical, seal, sha256
from pipeline_tasks.stage import Secret, Shard

SHARD = Shard(f"toy_map/f00/data/{'ab' * 16}.parquet", 3, 120, "ab" * 32)
MANIFEST = identified(
    Manifest(
        stage="toy_map",
        version=1,
        fingerprint="f00",
        params={"every": 3, "words": ["ż", "a"]},
        parents=("p1", "p2"),
        covers=("c1",),
        schema=(("id", "int64"), ("text", "large_string")),
        shards=(SHARD,),
        history={"urls": (SHARD,), "superseded": (SHARD, SHARD)},
        rejects=(SHARD,),
        quarantine=(),
        rows_in=5,
        bytes_in=99,
        rejected={"toy_map:third": 2},
        quarantined={},
        metrics={"kept": {}, "rejects": {}},
        parent_digests=("1" * 64, "2" * 64),
        resources={"0": "d" * 64},
    )
)


def test_a_manifest_is_read_as_it_was_written() -> None:
    assert load(dump(MANIFEST)) == MANIFEST
    assert dump(load(dump(MANIFEST))) == dump(MANIFEST)
    assert (MANIFEST.rows, MANIFEST.bytes) == (3, 120)


def test_libraries_are_stored_where_there_are_any_and_count() -> None:
    assert b'"libraries"' not in dump(MANIFEST)
    named = identified(replace(MANIFEST, libraries={"ftfy": "6.3.1"}))
    assert load(dump(named)) == named
    assert named.fingerprint != MANIFEST.fingerprint
    with pytest.raises(ContractError):
        load(dump(replace(named, libraries={"ftfy": "6.3.2"})))


EARLIER = "pyarrow-26.0.0 zstandard-0.25.0"


def test_a_manifest_of_format_4_is_read_as_it_was_written() -> None:
    """Its fingerprint and digest, which the release that wrote it gave, have the whole writer."""
    written = identified(replace(MANIFEST, format=4, writer=EARLIER))
    assert written.fingerprint == "b007b682030466c52757b5db"
    assert sha256(dump(written)) == "c285b0844cf8ba2b1d57de75a57427965e45101acd744d7ef4c9b520c9754b66"
    assert load(dump(written)) == written
    with pytest.raises(ContractError):
        load(dump(replace(written, writer="pyarrow-26.0.1 zstandard-0.25.0")))


@pytest.mark.parametrize(
    ("writer", "is_same"),
    [
        ("pyarrow-26.0.1 zstandard-0.25.0", True),
        ("pyarrow-26.1.0 zstandard-0.26.0", True),
        ("pyarrow-27.0.0 zstandard-0.25.0", False),
    ],
)
def test_of_a_writer_what_decides_rows_is_identity(writer: str, is_same: bool) -> None:
    before, after = (identified(replace(MANIFEST, writer=by)).fingerprint for by in (EARLIER, writer))
    assert (before == after) == is_same


def test_a_partition_has_the_fingerprint_of_its_stage_behind_any_history() -> None:
    whole = ["input", *(f"day {day}" for day in range(1000))]
    part = folded(whole)
    assert len(part) == 2
    assert folded(part) == part
    assert folded(["input", "day"]) == ("input", "day")
    assert folded(whole[:-1]) != part
    prints = [fingerprint_of("toy_map", 1, {}, parents, {}) for parents in (whole, part, whole[:-1])]
    assert prints[0] == prints[1] != prints[2]


def test_a_manifest_of_an_older_format_is_refused() -> None:
    older = json.loads(dump(MANIFEST))
    for changes, number in (({"format": 2}, 2), ({"format": None}, None)):
        with pytest.raises(ContractError, match=rf"a/manifest\.json .*format 4 or 5 .*format {number}"):
            load(json.dumps(older | changes).encode(), "a/manifest.json")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=200))
def test_random_bytes_are_no_manifest(body: bytes) -> None:
    for read in (load, load_receipt):
        with pytest.raises(ContractError):
            read(body)


@given(json_values)
def test_random_json_is_no_manifest(value: object) -> None:
    for read in (load, load_receipt):
        with pytest.raises(ContractError):
            read(json.dumps(value).encode())


@given(field=st.sampled_from(sorted(json.loads(dump(MANIFEST)))), value=json_values)
def test_a_field_of_another_type_is_refused_or_harmless(field: str, value: object) -> None:
    raw = json.loads(dump(MANIFEST)) | {field: value}
    try:
        read = load(seal(raw))
    except (ContractError, UnicodeEncodeError) as error:
        assert isinstance(error, UnicodeEncodeError) or re.search("is not a manifest|its fingerprint is", str(error))  # noqa: PT017 -- either outcome is right, and each is checked
    else:
        assert isinstance(read.rows, int)
        assert all(isinstance(shard, Shard) for shard in (*read.shards, *read.rejects))
        dump(read)


@pytest.mark.parametrize("body", [b"", b"[" * 100_000, b"{}", b"null", b'"x"', b"\xff\xfe", b"[[]]"])
def test_what_is_no_manifest_is_named(body: bytes) -> None:
    with pytest.raises(ContractError, match=r"^s3://b/toy/manifest\.json "):
        load(body, "s3://b/toy/manifest.json")


@pytest.mark.parametrize(
    "changed",
    [
        {"path": "../../etc/passwd"},
        {"path": "/etc/passwd"},
        {"path": "toy/../../x"},
        {"path": "landing:../x/../.."},
        {"path": "file:///etc/passwd"},
        {"path": "s3://other/bucket"},
        {"path": "toy/\x00"},
        {"path": ""},
        {"path": 7},
        {"rows": -1},
        {"rows": True},
        {"rows": "3"},
        {"bytes": 1.5},
        {"digest": "../x"},
        {"digest": None},
        {"extra": 1},
    ],
)
def test_a_shard_that_leaves_its_root_or_lies_about_its_size_is_refused(changed: dict[str, Any]) -> None:
    raw = json.loads(dump(MANIFEST))
    raw["shards"][0] |= changed
    with pytest.raises(ContractError, match=r"^a/manifest\.json "):
        load(seal(raw), "a/manifest.json")


@pytest.mark.parametrize("name", ["version", "rows_in", "bytes_in"])
@pytest.mark.parametrize("value", [-1, True, 1.0, "1", None])
def test_a_count_that_is_no_count_is_refused(name: str, value: object) -> None:
    with pytest.raises(ContractError, match=name):
        load(seal(json.loads(dump(MANIFEST)) | {name: value}))


@pytest.mark.parametrize("name", ["rejected", "quarantined"])
@pytest.mark.parametrize("value", [-1, True, 1.0, "1", None])
def test_a_tally_that_counts_no_rows_is_refused(name: str, value: object) -> None:
    with pytest.raises(ContractError, match=name):
        load(seal(json.loads(dump(MANIFEST)) | {name: {"toy_map:second": 0, "toy_map:third": value}}))


def test_parent_digests_are_as_many_as_parents() -> None:
    with pytest.raises(ContractError, match="parent_digests"):
        load(seal(json.loads(dump(MANIFEST)) | {"parent_digests": ["1" * 64]}))


def test_a_manifest_names_every_shard_that_it_stored() -> None:
    kept, url, old, older, reject, bad = (
        replace(SHARD, path=f"toy_map/f00/data/{digit * 32}.parquet", digest=digit * 64) for digit in "abcdef"
    )
    manifest = replace(
        MANIFEST,
        shards=(kept,),
        history={"urls": (url,), "superseded": (old, older)},
        rejects=(reject,),
        quarantine=(bad,),
    )
    assert manifest.stored == (kept, old, older, url, reject, bad)


def test_a_schema_is_its_names_and_types_in_order() -> None:
    schema = pa.schema([pa.field("text", pa.large_string()), pa.field("id", pa.int64(), nullable=False)])
    assert schema_pairs(schema) == (("text", "large_string"), ("id", "int64"))


def test_a_landed_file_may_have_any_name_below_its_snapshot() -> None:
    landed = replace(SHARD, path="landing:crawl-data/a b..c/ż+%20.warc.gz")
    manifest = identified(replace(MANIFEST, shards=(landed,)))
    assert load(dump(manifest)).shards == (landed,)


CHANGES = {
    "stage": "toy_group",
    "version": 2,
    "fingerprint": "0" * 24,
    "params": {"every": 4},
    "parents": ["p1", "p3"],
    "resources": {},
    "writer": "pyarrow-1",
}


@pytest.mark.parametrize("field", sorted(CHANGES))
def test_a_manifest_that_is_sealed_again_must_have_the_fingerprint_of_what_it_says(field: str) -> None:
    raw = json.loads(dump(MANIFEST))
    with pytest.raises(ContractError, match=r"^a/manifest\.json: .*fingerprint "):
        load(seal(raw | {field: CHANGES[field]}), "a/manifest.json")


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value of a JSON object."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in children:
        yield (*at, key)
        yield from leaves(item, (*at, key))


EVERY_PLACE = list(leaves(json.loads(dump(MANIFEST))))


@pytest.mark.parametrize("change", ["remove", "replace"])
def test_every_well_formed_edit_of_a_manifest_is_seen(change: str) -> None:
    assert len(EVERY_PLACE) > 50
    for *way, last in EVERY_PLACE:
        raw = json.loads(dump(MANIFEST))
        inner = raw
        for key in way:
            inner = inner[key]
        if change == "remove":
            del inner[last]
        else:
            inner[last] = [inner[last]]
        with pytest.raises(ContractError):
            load(canonical(raw) + b"\n")


@given(at=st.integers(0, len(dump(MANIFEST)) - 1), bit=st.integers(0, 7))
def test_every_flipped_bit_of_a_manifest_is_seen(at: int, bit: int) -> None:
    body = bytearray(dump(MANIFEST))
    body[at] ^= 1 << bit
    with pytest.raises(ContractError, match=r"^a/manifest\.json "):
        load(bytes(body), "a/manifest.json")


def test_a_field_that_is_given_twice_is_seen() -> None:
    body = dump(MANIFEST).replace(b'"rows_in":5', b'"rows_in":5,"rows_in":5')
    with pytest.raises(DigestMismatch, match=r"^a/manifest\.json "):
        load(body, "a/manifest.json")


# --- Canonical form and identity -------------------------------------------------------------------------------------


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=6), st.randoms())
def test_equal_values_have_equal_bytes(value: dict[str, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert canonical(dict(items)) == canonical(value)
    assert json.loads(canonical(value)) == value


def plainly(value: object) -> Any:
    """What is written of a value, by the definition."""
    if isinstance(value, Shard):
        kept = [declared for declared in fields(value) if declared.repr]
        left_out = [d for d in kept if OMITTED in d.metadata and getattr(value, d.name) == d.metadata[OMITTED]]
        return {declared.name: getattr(value, declared.name) for declared in kept if declared not in left_out}
    if isinstance(value, Secret):
        return {"check": value.check}
    if isinstance(value, Mapping):
        return {str(key): plainly(item) for key, item in value.items()}
    return [plainly(item) for item in value] if isinstance(value, (list, tuple)) else value


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.builds(Shard, st.text(max_size=5), st.just(3), st.just(4), st.text(max_size=3), start=st.integers(-1, 3))
    | st.builds(Secret.of, st.text(max_size=3)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 3), inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3).map(MappingProxyType)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_what_is_written_of_a_value_follows_from_its_fields(value: object) -> None:
    assert canonical(value) == json.dumps(
        plainly(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode("utf-8")


# --- Profiles ----------------------------------------------------------------------------------------------------------

tables = st.lists(
    st.tuples(
        st.none() | st.integers(0, 2**50),
        st.none() | st.floats(-10, 10, allow_nan=False),
        st.none() | st.sampled_from(["en", "de", "żółw", ""]),
    ),
    max_size=30,
)


def profiled(rows: list[tuple[Any, Any, Any]]) -> dict[str, Any]:
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) or [(), (), ()]
    arrays = [
        pa.array(values, kind) for values, kind in zip(columns, (pa.int64(), pa.float64(), pa.string()), strict=True)
    ]
    return profile(pa.RecordBatch.from_arrays(arrays, ["n", "share", "language"]), ("n", "share", "language", "none"))


@given(tables, tables, tables)
def test_profiles_add_up_the_same_in_any_grouping(a: Any, b: Any, c: Any) -> None:
    pa_, pb, pc_ = profiled(a), profiled(b), profiled(c)
    whole = profiled(a + b + c)
    assert merge([pa_, pb, pc_]) == merge([merge([pa_, pb]), pc_]) == merge([pa_, merge([pb, pc_])]) == whole
    assert merge([pc_, pa_, pb]) == whole


def test_packed_bytes_are_no_measure() -> None:
    assert profile(pa.table({"n": pa.array([b"\x00", b"\x01"], pa.large_binary())}), ["n"]) == {}


@given(tables)
def test_a_profile_counts_its_values(rows: Any) -> None:
    profiles = profiled(rows)
    numbers = [n for n, _, _ in rows if n is not None]
    assert profiles["n"]["count"] == len(numbers) == sum(profiles["n"]["bins"].values())
    assert profiles["n"]["sum"] == sum(numbers)
    assert profiles["share"]["count"] == sum(share is not None for _, share, _ in rows)
    assert sum(profiles["language"]["bins"].values()) == sum(name is not None for _, _, name in rows)


@given(st.lists(st.integers(0, 2**53), min_size=1, max_size=40))
def test_a_bin_starts_at_most_an_eighth_of_an_octave_below(values: list[int]) -> None:
    for value, low in zip(values, octave_bins(np.array(values, np.int64)).tolist(), strict=True):
        assert low <= value < low + max(1, low // 8)


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=60), st.floats(0.01, 1))
def test_a_quantile_is_the_bin_of_the_value_at_that_rank(values: list[int], share: float) -> None:
    column = profiled([(value, None, None) for value in values])["n"]
    exact = sorted(values)[max(int(np.ceil(share * len(values))) - 1, 0)]
    assert quantile(column, share) == octave_bins(np.array([exact]))[0]


def test_a_quantile_of_a_share_is_in_hundredths() -> None:
    column = profiled([(None, number / 100, None) for number in range(100)])["share"]
    assert [quantile(column, share) for share in (0.01, 0.5, 1.0)] == [0.0, 0.49, 0.99]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.string(), pa.large_string(), pa.bool_()]
)
def test_a_column_of_nulls_is_profiled_as_nothing(kind: pa.DataType) -> None:
    column_profile = profile(pa.table({"x": pa.nulls(3, kind)}), ("x",))["x"]
    assert (column_profile["count"], column_profile["bins"]) == (0, {})
    assert json.loads(canonical(column_profile)) == column_profile


def test_tallies_add_up_and_are_sorted() -> None:
    assert list(total([{"b": 1}, {"a": 2, "b": 3}, {}]).items()) == [("a", 2), ("b", 4)]


def test_writing_is_the_same_for_every_kind_of_mapping() -> None:
    makers: list[Callable[[], Any]] = [lambda: {"b": (1, 2), "a": SHARD}, lambda: {"a": SHARD, "b": [1, 2]}]
    assert canonical(makers[0]()) == canonical(makers[1]())
    omitted = ("start", "fields", "library")  # it is no piece of a file, its fields have our names, and we read it
    written = {name: value for name, value in asdict(SHARD).items() if name not in omitted}
    assert canonical([SHARD, (SHARD,)]) == canonical([written, [written]])
