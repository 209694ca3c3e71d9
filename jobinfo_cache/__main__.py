"""`python -m jobinfo_cache`: the command line."""

from __future__ import annotations

import sys

from jobinfo_cache.cli import main

if __name__ == "__main__":
    sys.exit(main())
