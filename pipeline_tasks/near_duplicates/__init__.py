"""The graph of documents that are alike, over all snapshots: bands propose pairs, exact similarity decides, one stays.

Stages sign documents and say how two are compared (`Likeness`); all else is the same for each of them. Those that cut
what documents share take from here in which order documents are (`id_order`). The room imports text, stage and what is
below.
"""
