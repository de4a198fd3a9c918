"""Gives what a page draws as text: formulas as TeX, emoji by their alternative text."""

from typing import Any

from pipeline_tasks.text.blocks.blocks import Blocks
from pipeline_tasks.text.page.formulas import FORMULAS, image_formula, write_formulas
from pipeline_tasks.text.page.rendering import write_images

_SCRIPT = b"<script"
_IMAGE = b"<img"


def drawn_texts(blocks: Blocks, page: bytes) -> list[bytes]:
    """Return the text of each hole of a page in order; a formula that a script repeats behind its drawing once."""
    parts = [page[start:end] for start, end in blocks.holes.tolist()]
    is_script = [part[:7].lower() == _SCRIPT for part in parts]
    ends = blocks.holes[:, 1].tolist()
    texts = []
    for nth, part in enumerate(parts):
        if _is_repeated(nth, parts, is_script, ends, page):
            texts.append(b"")
        else:
            texts.append(_drawn(part))
    return texts


def _is_repeated(nth: int, parts: list[bytes], is_script: list[bool], ends: list[int], page: bytes) -> bool:
    """Return whether a drawing has its source in the script right behind it, or behind another drawing of it."""
    while not is_script[nth] and nth + 1 < len(parts) and parts[nth][:4].lower() != _IMAGE:
        between = page[ends[nth] : ends[nth + 1] - len(parts[nth + 1])]
        if between.strip():
            return False
        nth += 1
        if is_script[nth]:
            return True
    return False


def _drawn(part: bytes) -> bytes:
    from resiliparse.parse.html import HTMLTree

    tree: Any = HTMLTree.parse(f"<body><p>{part.decode('utf-8', 'replace')}")
    body = tree.body
    images = body.query_selector_all("img[alt]").values()
    pictured = [text for image in images if (text := image_formula(image))]
    if part[:4].lower() == _IMAGE:
        write_images(tree, images)
    elif pictured:  # MediaWiki's: what else the holder has is hidden
        return pictured[0].encode()
    else:
        write_formulas(tree, body.query_selector_all(FORMULAS).values())
    return " ".join(body.text.split()).encode()
