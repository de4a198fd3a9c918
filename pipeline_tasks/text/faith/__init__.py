"""Whether a text that a model wrote says what its source says: figures, dates, units, names, negations, copies.

Imports nothing of ours but errors. What is compared is counted in the texts; no model is asked.
"""
