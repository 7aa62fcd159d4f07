"""``python -m warpsmith`` is the command ``warpsmith``."""

import sys

from .cli.main import main

sys.exit(main())
