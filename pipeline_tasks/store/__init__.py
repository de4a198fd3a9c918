"""Where bytes are kept and read back: local and S3 objects, shard files, segments and committed manifests.

Imports the vocabulary (`errors`, `schema`, `stage`, `manifest`), hashes of `text.base` for filters over keys, and
nothing else of ours.
"""
