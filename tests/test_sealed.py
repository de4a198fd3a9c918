"""A sealed object has one form, however it is written, and no changed byte of it is read."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline_tasks.errors import ContractError
from pipeline_tasks.sealed import SEAL, canonical, seal, unseal

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=8) | st.sampled_from(["a", SEAL, "z"]), JSON, max_size=5)


def by_definition(fields: dict[str, Any]) -> bytes:
    """The sealed object, as the text of `SEAL` says it."""
    others = {name: item for name, item in fields.items() if name != SEAL}
    return canonical({**others, SEAL: hashlib.sha256(canonical(others)).hexdigest()}) + b"\n"


@given(OBJECTS)
@example({})
@example({"z": [], "a": list(range(1000))})
@example({"history": {"z": [{"b": 1, "a": 2}] * 600, "a": []}, "t": {"n": [[1]] * 257}})
@example({"shards": [{SEAL: "0" * 64}] * 300, SEAL: "no digest"})
def test_an_object_is_sealed_as_it_is_defined_and_read_back(fields: dict[str, Any]) -> None:
    body = seal(fields)
    assert body == by_definition(fields)
    assert unseal(body, "object", "way out") == {name: item for name, item in fields.items() if name != SEAL}


@given(OBJECTS, st.data())
def test_a_changed_byte_is_seen(fields: dict[str, Any], data: st.DataObject) -> None:
    body = bytearray(seal(fields))
    body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ContractError):
        unseal(bytes(body), "object", "way out")


@pytest.mark.parametrize(
    "written",
    [
        lambda body: body[:-1],
        lambda body: body + b"\n",
        lambda body: body[:-1] + b" ",
        lambda body: b" " + body,
        lambda body: json.dumps(json.loads(body)).encode() + b"\n",
        lambda body: json.dumps(dict(reversed(json.loads(body).items())), separators=(",", ":")).encode() + b"\n",
        lambda body: body.replace(b'"a":1,', b'"a":1, '),
        lambda body: body.replace(b'"a":1,', b'"a":1,"a":1,'),
        lambda body: body.replace(b',"z"', b',"sha256":"%s","z"' % json.loads(body)[SEAL].encode()),
    ],
)
def test_another_way_to_write_the_same_is_seen(written: Any) -> None:
    body = seal({"a": 1, "z": "z"})
    with pytest.raises(ContractError):
        unseal(written(body), "object", "way out")
