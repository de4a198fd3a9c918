"""Makes the tokens of a request that a model reads, by the template for chats of its folder, and texts of tokens."""

import datetime as dt
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.generators.generator import Request, plain_prompt

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TODAY = dt.datetime(2024, 7, 26, tzinfo=dt.UTC)
"""The day that templates write which ask for today's (Llama 3.1's own default): a text does not depend on the date."""


_TODAY = re.compile(r"""strftime_now\(\s*(['"])([^'"]*)\1\s*\)""")


class Prompts:
    """The tokenizer of a model. Words of a text that stand for the template's own tokens are broken by a blank."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        self._tokenizer = tokenizer
        self._template = _without_clock(tokenizer.get_chat_template()) if tokenizer.chat_template else ""
        added = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
        special = {*added, *map(str, tokenizer.all_special_tokens)}
        self._special = sorted((token for token in special if len(token) > 1), key=lambda token: (-len(token), token))

    @classmethod
    def of(cls, folder: Path) -> "Prompts":
        """Load the tokenizer of a folder; RecipeError if it has none."""
        from transformers import AutoTokenizer

        try:
            return cls(AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False))
        except Exception as error:  # the library's own classes, of no common base
            message = f"{folder} has no tokenizer that can be read ({str(error)[:300]}); restore the model's folder"
            raise RecipeError(message) from error

    @property
    def ends(self) -> frozenset[int]:
        """The token that ends a text, if the tokenizer says which."""
        end = self._tokenizer.eos_token_id
        return frozenset() if end is None else frozenset({int(end)})

    def ids(self, request: Request) -> list[int]:
        """Return the tokens of a request."""
        plain = request._replace(system=self._broken(request.system), user=self._broken(request.user))
        if not self._template:
            return self._encoded(plain_prompt(plain), special=True)
        try:
            return self._encoded(self._chat(plain), special=False)
        except Exception:  # the template's own refusal: some know no system message
            if not plain.system:
                raise
            joined = Request("", f"{plain.system}\n\n{plain.user}", plain.seed)
            return self._encoded(self._chat(joined), special=False)

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""
        text: str = self._tokenizer.decode([*ids], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def _chat(self, request: Request) -> str:
        said = [("system", request.system)] * bool(request.system) + [("user", request.user)]
        options: dict[str, Any] = {"date_string": TODAY.strftime("%d %b %Y"), "enable_thinking": False}
        text: str = self._tokenizer.apply_chat_template(
            [{"role": role, "content": content} for role, content in said],
            chat_template=self._template,
            tokenize=False,
            add_generation_prompt=True,
            **options,
        )
        return text

    def _encoded(self, text: str, *, special: bool) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=special)["input_ids"]
        return ids

    def _broken(self, text: str) -> str:
        for token in self._special:
            text = text.replace(token, f"{token[0]} {token[1:]}")
        return text


def _without_clock(template: str) -> str:
    """Return a template that has `TODAY` where it asks for the date."""
    return _TODAY.sub(lambda asked: repr(TODAY.strftime(asked[2])), template)
