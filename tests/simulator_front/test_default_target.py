"""The target that a program gets which names none, set by POPLAR_TARGET_OPTIONS."""

from __future__ import annotations

import json

import pytest

from simulator import poplar


@pytest.fixture(autouse=True)
def two_bows(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"ipuModel.version": "bow", "ipuModel.numIPUs": 2, "ipuLinkTopology": "torus"}
    monkeypatch.setenv("POPLAR_TARGET_OPTIONS", json.dumps(options))


def test_a_model_without_a_name_is_what_the_environment_says() -> None:
    target = poplar.IPUModel().createDevice().getTarget()
    assert (target.getTargetSystemString(), target.getNumIPUs()) == ("ipu_model_bow", 2)


def test_what_the_program_fixes_it_keeps() -> None:
    target = poplar.IPUModel("mk1", numIPUs=4).getTarget()
    assert (target.getTargetSystemString(), target.getNumIPUs()) == ("ipu_model_mk1", 4)


def test_the_manager_lists_and_lends_such_devices() -> None:
    manager = poplar.DeviceManager()
    assert manager.getDevice(0).getTarget().getTargetSystemString() == "ipu_model_bow"
    device = manager.acquireAvailableDevice()
    assert device.getTarget().getNumIPUs() == 2
    device.detach()


def test_a_program_cannot_give_these_options_itself() -> None:
    with pytest.raises(poplar.PoplarError, match=r"no option 'ipuModel.numIPUs'"):
        poplar.IPUModel().createDevice({"ipuModel.numIPUs": 3})
