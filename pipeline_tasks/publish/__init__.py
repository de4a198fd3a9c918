"""What is published: the logs of versions, takedowns, ablations and models, and the files and datasets of versions.

Imports the vocabulary, `text`, `profiles`, `store`, and of `run` and `stages` a type and the tokenizers.
"""
