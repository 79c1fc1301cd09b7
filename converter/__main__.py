"""`python -m traceferry`."""

import sys

from traceferry.cli import main

sys.exit(main())
