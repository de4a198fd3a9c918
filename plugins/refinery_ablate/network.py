"""A small decoder of torch: what is trained on each arm. Everything that decides its numbers follows from a seed."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from refinery_ablate.sizes import Size

INITIAL = 0.02
"""Standard deviation of the first weights (GPT-2)."""

ROTATION = 10_000.0
"""Base of the rotary positions (RoFormer)."""


class Block(nn.Module):  # type: ignore[misc]  # Any without torch
    """Attention and a feed-forward part, each behind a norm and added to its input."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.before_attention = nn.RMSNorm(size.width)
        self.attention = nn.Linear(size.width, 3 * size.width, bias=False)
        self.attended = nn.Linear(size.width, size.width, bias=False)
        self.before_feed = nn.RMSNorm(size.width)
        self.feed = nn.Linear(size.width, 4 * size.width, bias=False)
        self.fed = nn.Linear(4 * size.width, size.width, bias=False)

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
        """Return (batch, length, width) for the same."""
        batch, length, width = x.shape
        parts = self.attention(self.before_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = (part.transpose(1, 2) for part in parts.unbind(2))
        query, key = rotated(query, rotation), rotated(key, rotation)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attended(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.fed(functional.gelu(self.feed(self.before_feed(x))))


class Decoder(nn.Module):  # type: ignore[misc]  # Any without torch
    """A decoder with rotary positions, whose output weights are those of its vocabulary."""

    def __init__(self, size: Size, vocabulary: int, length: int, seed: int) -> None:
        super().__init__()
        self.vocabulary = nn.Embedding(vocabulary, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.last = nn.RMSNorm(size.width)
        cosines, sines = rotation_of(length, size.width // size.heads)
        self.register_buffer("cosines", cosines, persistent=False)
        self.register_buffer("sines", sines, persistent=False)
        self._draw(seed, size.layers)

    def _draw(self, seed: int, layers: int) -> None:
        draws = torch.Generator().manual_seed(seed)
        for name, weights in self.named_parameters():
            if weights.ndim > 1:
                is_last = name.endswith(("attended.weight", "fed.weight"))
                deviation = INITIAL / math.sqrt(2 * layers) if is_last else INITIAL
                with torch.no_grad():
                    weights.copy_(torch.randn(weights.shape, generator=draws) * deviation)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits (batch, length, vocabulary) for ids (batch, length)."""
        buffers: Any = self
        rotation = (buffers.cosines[: ids.shape[1]], buffers.sines[: ids.shape[1]])
        x = self.vocabulary(ids)
        for block in self.blocks:
            x = block(x, rotation)
        return functional.linear(self.last(x), self.vocabulary.weight)


def rotation_of(length: int, width: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines (length, width / 2) of the rotary positions."""
    turns = ROTATION ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = torch.outer(torch.arange(length, dtype=torch.float32), turns)
    return angles.cos(), angles.sin()


def rotated(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Return (batch, heads, length, width) with pairs of channels turned by their position."""
    cosines, sines = (part.to(x.dtype) for part in rotation)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cosines - odd * sines, even * sines + odd * cosines), -1).flatten(-2)
