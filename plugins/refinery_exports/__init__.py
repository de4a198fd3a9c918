"""Training datasets in the formats that other trainers read: the card of a format, and the command that writes them.

Imports the vocabulary, `store`, `training`, `publish`, `ledger`. The formats have two rooms: `tokens` imports nothing
that a training machine does not have; `text`, and what knows versions, does.
"""
