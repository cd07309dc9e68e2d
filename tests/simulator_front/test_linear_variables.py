"""Variables that Poplar maps itself, and graphs made for a device."""

import numpy as np
import pytest

from simulator import poplar
from simulator.poplar import INT, PoplarError, VariableMappingMethod

LINEAR = VariableMappingMethod.LINEAR


def machine(tiles=4):
    return poplar.IPUModel("tiny", tilesPerIPU=tiles).createDevice()


@pytest.mark.parametrize(
    ("elements", "counts"), [(10, [3, 3, 2, 2]), (3, [1, 1, 1, 0]), (8, [2, 2, 2, 2])]
)
def test_a_linear_variable_is_spread_evenly_in_the_order_of_the_tiles(elements, counts):
    graph = poplar.Graph(machine())
    x = graph.addVariable(INT, [elements], LINEAR, "x")
    ends = np.cumsum(counts)
    expected = [[(int(e - c), int(e))] if c else [] for c, e in zip(counts, ends, strict=True)]
    found = [[tuple(part) for part in parts] for parts in graph.getTileMapping(x)]
    assert found + [[]] * (4 - len(found)) == expected


def test_a_linear_mapping_can_be_replaced_and_the_name_alone_maps_nothing():
    graph = poplar.Graph(machine())
    x = graph.addVariable(INT, [8], LINEAR)
    graph.setTileMapping(x, 2)
    assert [len(parts) for parts in graph.getTileMapping(x)][:3] == [0, 0, 1]
    named = graph.addVariable(INT, [8], "y")
    plain = graph.addVariable(INT, [8], VariableMappingMethod.NONE, "z")
    assert [variable.name for variable in graph.variables[1:]] == ["y", "z"]
    assert not any(graph.getTileMapping(named, False) + graph.getTileMapping(plain, False))


def test_a_virtual_device_has_the_first_tiles_and_takes_the_place_of_its_own():
    device = poplar.DeviceManager().getDevice(0)
    device.attach()
    part = device.createVirtualDevice(8)
    assert part.getTarget().getTilesPerIPU() == 8
    assert (part.isAttached(), device.isAttached()) == (True, False)
    assert part.getDriverIDs() == device.getDriverIDs()
    part.detach()
    with pytest.raises(PoplarError, match="tilesPerIPU is 9; there are 8"):
        part.createVirtualDevice(9)
