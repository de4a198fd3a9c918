"""Pages as blocks: their markup read once, what surrounds each block as numbers, and the blocks that are main text.

Imports `text.base` and `text.words`.
"""

from pathlib import Path

SHIPPED = Path(__file__).parent / "extractor.model"
"""The model that comes with the package (docs/decisions/0095-a-model-reads-blocks.md); to name it imports no loop."""

VERSE_SIGNS = ",.;:!?\u2026\u2014\u3001\u3002\uff0c\uff01\uff1f\u061f\u060c\u061b"
"""With which lines of verse end, in the scripts that have signs for it."""
