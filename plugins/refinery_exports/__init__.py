"""Training datasets in the formats that other trainers read: a module per format, and the command that writes them.

Imports the vocabulary, `store`, `training`, `publish` and `ledger`. What exports tokens imports nothing that a training
machine does not have; what knows versions and texts does.
"""
