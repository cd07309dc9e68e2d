"""Let a tutorial find the simulator in a checkout that is not installed.

A tutorial imports this first, as Python looks for modules beside the program.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

if find_spec("simulator") is None:
    sys.path.append(str(Path(__file__).parents[2]))
