"""Training datasets in the formats that other trainers read: a module per format, listed in `formats`.

Imports the vocabulary, `store`, `training` and the rest of `publish`. What exports tokens imports nothing that a
training machine does not have; what knows versions and texts does.
"""
