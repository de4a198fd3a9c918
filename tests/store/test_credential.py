"""A credential has one name: of a variable, or of a connection."""

import pytest

from pipeline_tasks.store.credential import Credential


@pytest.mark.parametrize(
    ("env", "connection"), [("", ""), ("THE_TOKEN", "the_store"), ("s3cr3t value", ""), ("", "s3cr3t/value")]
)
def test_a_credential_without_one_name_is_refused_and_not_repeated(env: str, connection: str) -> None:
    with pytest.raises(ValueError, match="`env`") as refused:
        Credential(env, connection).require_names("the store")
    assert "s3cr3t" not in str(refused.value)


@pytest.mark.parametrize(("env", "connection"), [("THE_TOKEN", ""), ("", "the_store")])
def test_one_name_is_enough(env: str, connection: str) -> None:
    Credential(env, connection).require_names("the store")
