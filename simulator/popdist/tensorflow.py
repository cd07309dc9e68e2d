"""`popdist.tensorflow`: which instance this is, in an IPUConfig of TensorFlow for the IPU.

It sets fields and needs no TensorFlow: its backend for the IPU is not here, and runs nothing.
"""

from __future__ import annotations

from typing import Any

from simulator.popdist.calls import getDeviceId, place


def set_ipu_config(
    config: Any, ipus_per_replica: int | None = None, configure_device: bool = True
) -> Any:
    """Return an IPUConfig that tells instances, and with `configure_device` their IPUs.

    Raises PoplarError when no group of IPUs is as large as the replicas of this instance need.
    """
    here, distribution = place(), config.experimental.multi_replica_distribution
    distribution.process_count, distribution.process_index = here.instances, here.instance
    if configure_device:
        config.select_ipus = [getDeviceId(ipus_per_replica)]
    return config
