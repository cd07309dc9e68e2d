"""The options of a target, by `POPLAR_TARGET_OPTIONS` or by the program.

They describe how the IPUs of a real system are joined. The model routes over a ladder of cards, and
between IPU-Link domains over GW-Links, and syncs by one formula whatever the others say, so that a
value of those other than the default is logged as such.
"""

from __future__ import annotations

from collections.abc import Mapping

from simulator.graph.machine.constants import IpuLinkConfiguration, IpuLinkTopology
from simulator.graph.option_table import Option, OptionValue, checked, from_environment
from simulator.logging import enabled, log

ENVIRONMENT = "POPLAR_TARGET_OPTIONS"
SYNC_CONFIGURATIONS = (
    "intraReplicaAndAll",
    "ipuAndAll",
    "intraReplicaAndLadder",
    "ipuAndInstanceAndIntraReplicaAndAll",
)
DOMAIN_SIZE = "ipuLinkDomainSize"
TARGET_OPTIONS: dict[str, Option] = {
    "ipuLinkConfiguration": Option(
        "default", "how the IPUs are joined", allowed=tuple(IpuLinkConfiguration)
    ),
    "ipuLinkTopology": Option("mesh", "what the IPU-Links form", allowed=tuple(IpuLinkTopology)),
    DOMAIN_SIZE: Option(64, "IPUs that IPU-Links join"),
    "instanceSize": Option(64, "IPUs of one instance of the program"),
    "gatewayMode": Option(True, "whether the host reaches the IPUs through a gateway"),
    "syncConfiguration": Option(
        "intraReplicaAndAll", "which groups of IPUs sync", allowed=SYNC_CONFIGURATIONS
    ),
}
# By the environment alone: what a program gets that names no part or number of IPUs.
DEFAULT_PART, DEFAULT_IPUS = "ipuModel.version", "ipuModel.numIPUs"
MODEL_OPTIONS: dict[str, Option] = {
    DEFAULT_PART: Option("mk2", "the part of an IPUModel, and of the devices of a DeviceManager"),
    DEFAULT_IPUS: Option(1, "IPUs of an IPUModel, and of an available device that is acquired"),
}
FIELDS = {
    "ipuLinkConfiguration": "link_configuration",
    "ipuLinkTopology": "link_topology",
    DOMAIN_SIZE: "link_domain_size",
    "instanceSize": "instance_size",
    "gatewayMode": "gateway_mode",
    "syncConfiguration": "sync_configuration",
}
_ENUMS = {"ipuLinkConfiguration": IpuLinkConfiguration, "ipuLinkTopology": IpuLinkTopology}


def option_fields(options: Mapping[str, object] | None) -> dict[str, object]:
    """Return the fields of a target that its options set; the environment wins over the program.

    Raises InvalidOptionError.
    """
    values = {**checked(TARGET_OPTIONS, options or {}, "target options")}
    environment = from_environment(TARGET_OPTIONS | MODEL_OPTIONS, ENVIRONMENT)
    values |= {name: value for name, value in environment.items() if name in TARGET_OPTIONS}
    if values and enabled("PO", "WARN", "TARGET"):
        for name, value in values.items():
            if value != TARGET_OPTIONS[name].default and name != DOMAIN_SIZE:
                log("PO", "TARGET", "WARN", f"{name} is {value}: kept, but not modelled")
    return {FIELDS[name]: _ENUMS.get(name, type(value))(value) for name, value in values.items()}


def model_defaults() -> dict[str, OptionValue]:
    """Return those of MODEL_OPTIONS that the environment sets; raises InvalidOptionError."""
    environment = from_environment(TARGET_OPTIONS | MODEL_OPTIONS, ENVIRONMENT)
    return {name: value for name, value in environment.items() if name in MODEL_OPTIONS}
