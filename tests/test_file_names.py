"""Files of tests have different names: pytest imports a test by its file's name, and refuses the second of one name."""

from collections import Counter

from tests.embedded import PROJECT


def test_no_two_files_of_tests_have_one_name() -> None:
    """A run of one room does not see it, and a run of all ends with an error for the second file."""
    names = Counter(path.name for path in (PROJECT / "tests").rglob("test_*.py"))
    assert len(names) > 500
    assert [name for name, count in names.items() if count > 1] == []
