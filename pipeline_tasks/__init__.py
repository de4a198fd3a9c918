"""Refinery: crawl snapshots in, clean packed training tokens out.

Arrow allocates by the system's allocator, unless the environment says otherwise: its own keeps what was freed, which
was 25 to 60 MB of every worker, at no less processor time (docs/decisions/0113-one-template.md). Arrow reads the
variable once, when it is imported; processes that this one starts inherit it.
"""

import os

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
