"""How much of a profile's number of examples a slow test takes. `tests/conftest.py` names the profiles.

A test that says nothing takes all of them.
"""

from hypothesis import settings

few_examples = settings(max_examples=settings.default.max_examples // 4)
"""An example runs a stage, or builds what it compares: tens of milliseconds."""

fewest_examples = settings(max_examples=settings.default.max_examples // 10)
"""An example runs a stage under many batch sizes, or fills a root: tenths of a second and more."""
