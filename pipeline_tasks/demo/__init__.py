"""The demo's own crawl: real prose as two small snapshots of WARC, with a known truth to compare findings with.

Beside it are the parts that `refinery new` writes. Imports the vocabulary, `text`, `store`, `publish`, `inspect`,
`flow` and, for those parts, `testing`.
"""

from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.demo.truth import Plant, Truth, compare, load

__all__ = ["Plant", "Truth", "compare", "load", "write_crawl"]

FOLDER = ".refinery/demo"
"""Where the demo's crawl and output go, unless another folder is named."""
