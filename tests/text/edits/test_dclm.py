"""The DCLM modifiers equal the published patterns, for any text."""

import numpy as np
from hypothesis import example, given

from pipeline_tasks.text.edits import dclm
from tests.text import plain_profiles
from tests.text.texts import PROFILE_BATCHES, views


@given(PROFILE_BATCHES)
@example(["A b\n3 likes\n12.5K Followers!\n\n\n\n\nok then\nadd 3 items in cart now\nSign-in here\nRead more..."])
def test_modifiers(texts: list[str]) -> None:
    modified, changed = dclm.modify(*views(texts), (0.5, 0.999999, 2, 10))
    assert modified.to_pylist() == [plain_profiles.modified(text) for text in texts]
    assert np.isfinite(changed).all()
