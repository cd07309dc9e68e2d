"""Tests that draw numbers draw the same ones, whatever tests ran before them."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def fresh_generator(request: pytest.FixtureRequest) -> None:
    """Set the generator RANDOM of the test's module, if it has one, to a first state."""
    generator = getattr(request.module, "RANDOM", None)
    if generator is not None:
        generator.bit_generator.state = np.random.default_rng(22).bit_generator.state
