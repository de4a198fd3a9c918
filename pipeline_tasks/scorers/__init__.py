"""Models that score a text: one kind of model per file behind one protocol; imports text, yaml_file and what is below.

A scorer reads texts and returns numbers. It never changes a text, and a score follows from the text, the model and the
numerics alone (docs/decisions/0050-scores-by-models.md).
"""
