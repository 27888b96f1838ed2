"""Run the command line as ``python -m acep`` if the script ``acep`` is not on the path."""

import sys

from acep.cli import main

if __name__ == "__main__":
    sys.exit(main())
