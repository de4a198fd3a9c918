"""Entry point: `python -m pipeline_tasks.cli` is the `refinery` command."""

import sys

from pipeline_tasks.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
