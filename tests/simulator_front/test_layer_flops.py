"""Operations of layers by PopLibs' sums, and expected places of fields."""

from __future__ import annotations

import numpy as np
import pytest
from device_program import DeviceProgram

from simulator import popnn
from simulator.graph.errors import poplibs_error
from simulator.graph.types import FLOAT


def test_norms_count_each_pass_over_the_activations() -> None:
    # means, squares, whitening twice, scaling twice; 5 a statistic
    assert popnn.getNormFwdFlops(8, 100) == 600 + 40
    assert popnn.getNormFwdFlops(8, 100, False) == 200
    assert popnn.getNormBwdFlops(8, 100) == 800 + 16
    assert popnn.getNormWuFlops(8, 100) == 300 + 32


def test_recurrent_layers_count_their_products() -> None:
    batch, steps, inputs, outputs = 3, 4, 5, 6
    sizes = (FLOAT, batch, steps, [inputs, outputs])
    lstm, gru = popnn.lstm.LstmParams(*sizes), popnn.gru.GruParams(*sizes)
    each = batch * steps * outputs
    product = 2 * each * (inputs + outputs)
    assert popnn.getBasicLstmCellFwdFlops(lstm) == 4 * product + 4 * each
    assert popnn.getBasicLstmCellWuFlops(lstm) == 4 * product + 8 * each
    assert popnn.getBasicLstmCellBwdFlops(lstm) == 4 * product + 6 * each
    assert popnn.getBasicGruCellFwdFlops(gru) == 3 * product + 5 * each
    assert popnn.getBasicGruCellBwdFlops(gru) == each * (6 * inputs + 12 * outputs + 8)
    assert popnn.getBasicGruCellWuFlops(gru) == 3 * product + 6 * each


@pytest.mark.parametrize("disabled", [False, True])
def test_places_of_fields_are_expected_coordinates(disabled: bool) -> None:
    run, fields = DeviceProgram(), np.random.default_rng(1).normal(size=(2, 3, 4))
    t = run.tensor(fields)
    places, warmth = popnn.spatialSoftMax2D(run.graph, run.program, t, 0.5, disabled)
    out, warm = run.run(places, warmth)
    weights = fields / 0.5 if disabled else np.exp(fields / 0.5) / np.exp(fields / 0.5).sum()
    rows, columns = np.linspace(-1, 1, 3), np.linspace(-1, 1, 4)
    wanted = [weights.sum(2) @ rows, weights.sum(1) @ columns]
    np.testing.assert_allclose(out, np.transpose(wanted), rtol=1e-4, atol=1e-5)
    assert warm == 0.5
    with pytest.raises(poplibs_error, match=r"\[fields, height, width\] is needed"):
        popnn.spatialSoftMax2D(run.graph, run.program, t[0], 1.0)
