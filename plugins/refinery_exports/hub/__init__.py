"""A folder as Hugging Face's Hub has it: its files, the head of its card, and the rows of versions that it is made of.

Imports the formats' card and `text`, and of the core the vocabulary, `store`, `publish`, `report` and `inspect.views`;
`folder`, `features` and `card` import nothing that a training machine does not have, but yaml.
"""
