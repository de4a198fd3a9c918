"""The formats of exports of our own, by name: of tokens, of texts, and of all rows."""

from refinery_exports.format import Format
from refinery_exports.formats import format_of
from refinery_exports.text.text_files import TableFormat, TextFormat

from pipeline_tasks.seams import EXPORTS, own_parts

OWN = {name: format_of(name) for name in own_parts(EXPORTS)}

FORMATS = {name: card for name, card in OWN.items() if isinstance(card, Format)}

TEXT_FORMATS = {name: card for name, card in OWN.items() if isinstance(card, TextFormat)}

TABLE_FORMATS = {name: card for name, card in OWN.items() if isinstance(card, TableFormat)}
