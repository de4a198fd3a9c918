"""Messages end in one full stop, and say in plain words why stored JSON could not be read."""

from typing import Any

import pytest

from pipeline_tasks import errors
from pipeline_tasks.errors import RefineryError, cause
from pipeline_tasks.publish.logs.version_log import Version

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, RefineryError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("not YAML: it ends too early..", "not YAML: it ends too early."),
        ("cannot be read (disk full.).. Correct it", "cannot be read (disk full.). Correct it"),
        ("shards a.warc .. b.warc of ../x and a/..", "shards a.warc .. b.warc of ../x and a/.."),
        ("the text begins with 'so it...' and ends...", "the text begins with 'so it...' and ends..."),
    ],
)
def test_no_message_ends_in_two_full_stops(kind: type[RefineryError], message: str, shown: str) -> None:
    assert str(kind(message)) == shown


def failure(work: Any) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 -- whatever the interpreter raises
        work()
    return caught.value


def test_causes_are_not_in_the_words_of_the_interpreter() -> None:
    nothing: Any = None
    assert cause(failure(lambda: {}["shards"])) == "it has no field 'shards'"
    assert cause(failure(lambda: nothing["x"])) == "a field has another type than it should"
    assert cause(failure(lambda: nothing.items(1))) == "a field has another type than it should"
    assert cause(failure(lambda: Version(home=1))) == "it has the field 'home', which is not known"  # type: ignore[call-arg]
    assert "it has no field 'number'" in cause(failure(Version))  # type: ignore[call-arg]
    assert cause(RecursionError("maximum recursion depth exceeded")) == "it is nested too deeply"
    assert cause(ValueError("rows cannot be -1")) == "rows cannot be -1"
