"""Windows are cut by code points, from shares of a text on."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.words.windows import window_bounds
from tests.text.texts import views

TEXT = st.lists(st.sampled_from(["a", "é ", "中", "\U0001f600", " ", "\n", "word "]), max_size=200).map("".join)


def windows(text: str, shares: tuple[float, ...], size: int, least: int) -> list[str | None]:
    if size == 0 or len(text) <= size:
        cut = [text, *[""] * (len(shares) - 1)]
    else:
        begins = [int(len(text) * share) for share in shares]
        cut = [text[begin : begin + size] for begin in begins]
    return [window if window and sum(not letter.isspace() for letter in window) >= least else None for window in cut]


@given(
    st.lists(TEXT, max_size=3),
    st.sampled_from([(0.0,), (0.5,), (0.0, 0.4, 0.9)]),
    st.sampled_from([0, 1, 30, 300]),
    st.sampled_from([0, 1, 5]),
)
def test_windows(texts: list[str], shares: tuple[float, ...], size: int, least: int) -> None:
    offsets, data = views(texts)
    bounds = window_bounds(offsets, data, shares, size, least)
    cut = [[bytes(data[begin:end]).decode() if begin >= 0 else None for begin, end in row] for row in bounds]
    assert cut == [windows(text, shares, size, least) for text in texts]
