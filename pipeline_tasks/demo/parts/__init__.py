"""Parts as `refinery new` writes them under another name: a module, its test and a recipe of each kind.

Imports the vocabulary, the cards of all kinds, and `testing`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of part that is written: the module of one, and what `refinery` does with a recipe that has it.

    Beside the module, under its name, are its recipe, its test `test_NAME.py` and its suite, if it has any.
    """

    module: str
    command: str
