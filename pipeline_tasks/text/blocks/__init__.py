"""Pages as blocks: their markup read once, what surrounds each block as numbers, and the blocks that are main text.

Imports `text.base` and `text.words`.
"""

from pathlib import Path

SHIPPED = Path(__file__).parent / "extractor.model"
"""The model that comes with the package (docs/decisions/0095-a-model-reads-blocks.md); to name it imports no loop."""
