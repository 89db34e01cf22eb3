"""`python -m airchoir` is the command `airchoir`."""

import sys

from airchoir.cli import main

sys.exit(main())
