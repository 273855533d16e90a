"""The command line of the study scripts."""

import sys

from adalayers.errors import BadInput
from adalayers.installed import settle_imports

try:  # before anything is imported that could be taken from a wrong place
    settle_imports()
except BadInput as error:
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(2) from None
