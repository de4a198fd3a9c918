"""What writes texts: the protocol of generators, their requests, and which extension brings which kind.

Imports the vocabulary. Models are loaded by extensions (`refinery.generators`).
"""
