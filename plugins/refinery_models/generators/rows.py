"""Runs a causal model for the rows of a batch such that what it says of a row follows from that row alone.

A prompt is read by itself. Afterwards all rows go through the layers together, in batches of one shape; attention,
whose sums depend on the length of a row, is computed by row, over its own keys. What rows still share are products of
matrices of one shape, in which each row has sums of its own: `Rows.of` sees that this is so on this machine.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PreTrainedModel

    from refinery_models.generators.sampling import Logits

NAME = "refinery_rows"
"""The name of our attention, by which transformers knows it."""

SLOTS = 16
"""Rows of a batch, whether there are so many or not: a batch of another shape may sum in another order."""

FEWER = (4, 8)
"""Rows of a smaller batch, which is taken where it gives the same bits as a whole one."""

APART = 1e-3
"""Share of the largest output by which ours may differ from those of the network's own attention: it sums otherwise."""

UNKNOWN = ("softcap", "s_aux", "position_bias", "cu_seq_lens_q")
"""What networks ask of attention beyond a window; ours knows none of it."""


class Unfit(Exception):
    """The network cannot be run this way."""


class Keys:
    """The keys and values of one row, by layer: room for all tokens that it may have."""

    def __init__(self, most: int) -> None:
        self.length, self._most = 0, most
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}

    def copy(self) -> "Keys":
        """Return the same keys in places of their own."""
        other = Keys(self._most)
        other.length = self.length
        other._layers = {layer: (keys.clone(), values.clone()) for layer, (keys, values) in self._layers.items()}
        return other

    def added(self, layer: int, keys: "Tensor", values: "Tensor") -> "tuple[Tensor, Tensor]":
        """Put keys and values of new tokens behind those of earlier ones; return all, shape (heads, tokens, d)."""
        end = self.length + keys.shape[1]
        kept = self._layers.get(layer)
        if kept is None:
            kept = tuple(each.new_empty((each.shape[0], self._most, each.shape[2])) for each in (keys, values))
            self._layers[layer] = kept
        kept[0][:, self.length : end] = keys
        kept[1][:, self.length : end] = values
        return kept[0][:, :end], kept[1][:, :end]


class Row(NamedTuple):
    """A row of a batch: its last token, and the keys of those before."""

    token: int
    keys: Keys


def attend(
    module: "Module", query: "Tensor", key: "Tensor", value: "Tensor", attention_mask: "Tensor | None", **asked: object
) -> "tuple[Tensor, None]":
    """Return what each row attends to, shape (rows, tokens, heads, d): nothing for rows without keys.

    `query`, `key` and `value` have the shape (rows, heads, tokens, d); rows without keys fill a batch. transformers
    hands on our `slots`, which are the keys of the first rows, the `scaling` of products, and a layer's
    `sliding_window`.
    """
    slots = cast("Sequence[Keys] | None", asked.get("slots"))
    if slots is None or attention_mask is not None or any(asked.get(name) is not None for name in UNKNOWN):
        message = "its attention asks for more than keys and a window"
        raise Unfit(message)
    scaling, window = cast("float | None", asked.get("scaling")), cast("int | None", asked.get("sliding_window"))
    layer = int(cast("int", module.layer_idx))
    attended = query.new_zeros((*query.shape[:3], value.shape[3]))
    for row, keys in enumerate(slots):
        attended[row] = _attended(query[row], *keys.added(layer, key[row], value[row]), scaling, window)
    return attended.transpose(1, 2).contiguous(), None


def _attended(query: "Tensor", keys: "Tensor", values: "Tensor", scaling: float | None, window: int | None) -> "Tensor":
    """Return what one row attends to, shape (heads, tokens, d): its prompt, or its one new token."""
    from torch.nn.functional import scaled_dot_product_attention

    heads, length, _ = query.shape
    if length > 1:
        return _of_prompt(query, keys, values, scaling, window)
    if window:
        keys, values = keys[:, -window:], values[:, -window:]
    packed = query.view(keys.shape[0], heads // keys.shape[0], -1)  # heads that share keys, as tokens of one
    said: Tensor = scaled_dot_product_attention(packed[None], keys[None], values[None], scale=scaling)
    return said.view(heads, 1, -1)


def _of_prompt(
    query: "Tensor", keys: "Tensor", values: "Tensor", scaling: float | None, window: int | None
) -> "Tensor":
    import torch

    groups, length = query.shape[0] // keys.shape[0], query.shape[1]
    if groups > 1:
        keys, values = keys.repeat_interleave(groups, 0), values.repeat_interleave(groups, 0)
    mask = None
    if window and length > window:
        place = torch.arange(length, device=query.device)
        apart = place[:, None] - place[None, :]
        mask = (apart >= 0) & (apart < window)
    return torch.nn.functional.scaled_dot_product_attention(
        query[None], keys[None], values[None], attn_mask=mask, scale=scaling, is_causal=mask is None
    )


class Rows:
    """A network whose rows are run together. `shapes` are the sizes of batches that give the same bits, in order."""

    def __init__(self, network: "PreTrainedModel", shapes: tuple[int, ...] = (SLOTS,)) -> None:
        self._network, self._shapes = network, shapes
        self._device = next(network.parameters()).device

    @classmethod
    def of(cls, network: "PreTrainedModel") -> "Rows":
        """Return the rows of a network that uses our attention; Unfit if neighbors show, or outputs are not its own."""
        rows = cls(network)
        _require_own(network, rows)
        whole = rows._one_everywhere(SLOTS)
        if (whole != whole[0]).any():
            message = "what it says of a row depends on the place of the row in a batch"
            raise Unfit(message)
        if (rows._one_in_company() != whole[0]).any():
            message = "what it says of a row depends on the rows beside it"
            raise Unfit(message)
        same = tuple(each for each in FEWER if (rows._one_everywhere(each) == whole[0]).all())
        return cls(network, (*same, SLOTS))

    def read(self, ids: Sequence[int], most: int) -> "tuple[Logits, Keys]":
        """Read a prompt; return what is said of the next token, and keys with room for `most` tokens."""
        import torch

        keys = Keys(most)
        with torch.inference_mode():
            tokens = torch.tensor([[*ids]], device=self._device)
            places = torch.arange(len(ids), device=self._device)[None]
            logits = self._network(
                input_ids=tokens, position_ids=places, use_cache=False, slots=(keys,), logits_to_keep=1
            ).logits
        keys.length = len(ids)
        return logits[0, -1].float().cpu().numpy(), keys

    def step(self, rows: Sequence[Row]) -> "Logits":
        """Add a token to each of at most `SLOTS` rows; return what is said of the next ones, shape (rows, tokens)."""
        return self._step(rows, next(shape for shape in self._shapes if shape >= len(rows)))

    def _step(self, rows: Sequence[Row], shape: int) -> "Logits":
        import torch

        tokens, places = np.zeros((shape, 1), np.int64), np.zeros((shape, 1), np.int64)
        for place, row in enumerate(rows):
            tokens[place], places[place] = row.token, row.keys.length
        sent = [torch.from_numpy(each).to(self._device) for each in (tokens, places)]
        slots = [row.keys for row in rows]
        with torch.inference_mode():
            logits = self._network(input_ids=sent[0], position_ids=sent[1], use_cache=False, slots=slots).logits
        for keys in slots:
            keys.length += 1
        outputs: Logits = logits[: len(rows), -1].float().cpu().numpy()
        return outputs

    def _one_everywhere(self, shape: int) -> "Logits":
        """Return what is said of one row at each place of a batch, of which all others have it, too."""
        row = self._started(0)
        return self._step([row._replace(keys=row.keys.copy()) for _ in range(shape)], shape)

    def _one_in_company(self) -> "Logits":
        """Return what is said of that row amid others."""
        place = SLOTS // 2 + 1
        rows = [self._started(0 if each == place else each + 1) for each in range(SLOTS)]
        said: Logits = self._step(rows, SLOTS)[place]
        return said

    def _started(self, seed: int) -> Row:
        ids = _some_tokens(self._network, seed)
        return Row(ids[-1], self.read(ids[:-1], len(ids))[1])


def _some_tokens(network: "PreTrainedModel", seed: int) -> list[int]:
    """Return tokens of a vocabulary by a seed, some more for each of the first seeds."""
    size = int(network.get_input_embeddings().weight.shape[0])
    return [int(each) for each in np.random.Generator(np.random.Philox(seed)).integers(0, size, 6 + seed)]


def _require_own(network: "PreTrainedModel", rows: Rows) -> None:
    """Raise Unfit unless our attention gives what the network's own gives, but for the order of sums."""
    import torch

    ids = _some_tokens(network, SLOTS)
    logits, keys = rows.read(ids[:-1], len(ids))
    ours = [logits, rows.step([Row(ids[-1], keys)])[0]]
    network.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            given = torch.tensor([ids], device=next(network.parameters()).device)
            theirs = network(input_ids=given, use_cache=False).logits[0, -2:].float().cpu().numpy()
    finally:
        network.set_attn_implementation(NAME)
    if not np.allclose(ours, theirs, rtol=0, atol=APART * float(np.abs(theirs).max())):
        message = "its attention is another one than ours"
        raise Unfit(message)
