"""`python -m traceferry`."""

import sys

from traceferry.apps.cli import main

sys.exit(main())
