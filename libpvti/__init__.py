"""The name that existing scripts import: `import libpvti as pvti`."""

from pvti import *  # noqa: F403
from pvti import __all__ as __all__
from pvti import __dir__ as __dir__
