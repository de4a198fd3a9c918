"""Where kernels run: `local` is the reference, `spark` and `ray` give the same rows.

Imports the vocabulary, `run` and `text.base`; `spark` alone imports pyspark, `ray` alone imports ray.
"""
