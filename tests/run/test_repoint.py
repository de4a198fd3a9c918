"""Params name files anywhere inside them, and a worker reads its own copies of all of them."""

from dataclasses import dataclass

from pipeline_tasks.run.task import repoint

MOVED = {"s3://lists/a": "copies/a", "s3://lists/b": "copies/b"}


@dataclass(frozen=True, slots=True)
class Lists:
    """Params inside params."""

    allowed: tuple[str, ...]
    blocked: str
    most: int = 3


def test_paths_in_scalars_tuples_mappings_and_nested_params_are_replaced() -> None:
    assert repoint("s3://lists/a", MOVED) == "copies/a"
    assert repoint(("s3://lists/a", "s3://lists/b", "web"), MOVED) == ("copies/a", "copies/b", "web")
    assert repoint({"x": ("s3://lists/b",), "y": 1.5}, MOVED) == {"x": ("copies/b",), "y": 1.5}
    assert repoint(Lists(("s3://lists/a",), "s3://lists/b"), MOVED) == Lists(("copies/a",), "copies/b")


def test_what_is_no_path_that_was_moved_stays() -> None:
    values = (None, True, 7, 0.5, "s3://lists/c", "", (), {})
    assert [repoint(value, MOVED) for value in values] == list(values)
