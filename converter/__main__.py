"""`python -m traceferry`."""

import sys

from traceferry.apps.entry import main

sys.exit(main())
