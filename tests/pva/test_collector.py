"""Python's collector is off while much is made."""

from __future__ import annotations

import gc

import pytest

from pva.collector import collector_paused


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_off_within_and_as_it_was_afterwards(enabled: bool) -> None:
    was_enabled = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(KeyError), collector_paused():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
