"""Operations of norms and recurrent layers (PopLibs lib/popnn/Norms.cpp, Lstm.cpp, Gru.cpp).

As there, non-linearities and the addition of biases count as none.
"""

from __future__ import annotations

from simulator.logging import library_call
from simulator.poplibs.popnn.gru import GruParams
from simulator.poplibs.popnn.lstm import LstmParams


@library_call("POPNN")
def getNormFwdFlops(
    statisticsSize: int, numActsElements: int, computeEstimates: bool = True
) -> int:
    """Count the operations of a norm's forward pass: 6 an element and 5 a statistic, or 2.

    >>> from simulator import popnn
    >>> popnn.getNormFwdFlops(10, 1000)
    6050
    """
    flops = 2 * numActsElements
    return flops + (4 * numActsElements + 5 * statisticsSize if computeEstimates else 0)


@library_call("POPNN")
def getNormBwdFlops(statisticsSize: int, numActsElements: int) -> int:
    """Count the operations of a norm's backward pass: 8 an element and 2 a statistic.

    >>> from simulator import popnn
    >>> popnn.getNormBwdFlops(10, 1000)
    8020
    """
    return 8 * numActsElements + 2 * statisticsSize


@library_call("POPNN")
def getNormWuFlops(paramsSize: int, numActsElements: int) -> int:
    """Count the operations of a norm's update: 3 an element and 4 a parameter.

    >>> from simulator import popnn
    >>> popnn.getNormWuFlops(10, 1000)
    3040
    """
    return 3 * numActsElements + 4 * paramsSize


def _steps(params: LstmParams | GruParams) -> tuple[int, int, int]:
    """Return samples of all steps, inputs and outputs."""
    rnn = params.rnn
    return rnn.batchSize * rnn.timeSteps, rnn.inputs, rnn.outputs


@library_call("POPNN")
def getBasicLstmCellFwdFlops(params: LstmParams) -> int:
    """Count the operations of the forward pass: four products, 4 more an output.

    >>> from simulator import poplar, popnn
    >>> params = popnn.lstm.LstmParams(poplar.FLOAT, 1, 1, [2, 3])
    >>> popnn.getBasicLstmCellFwdFlops(params)  # 3 * (8 * 5 + 4)
    132
    """
    samples, inputs, outputs = _steps(params)
    fed = inputs + outputs
    return samples * outputs * (8 * fed + 4)


@library_call("POPNN")
def getBasicLstmCellBwdFlops(params: LstmParams) -> int:
    """Count the operations of the backward pass.

    >>> from simulator import poplar, popnn
    >>> params = popnn.lstm.LstmParams(poplar.FLOAT, 1, 1, [2, 3])
    >>> popnn.getBasicLstmCellBwdFlops(params)  # 3 * (8 * 5 + 6)
    138
    """
    samples, inputs, outputs = _steps(params)
    fed = inputs * params.calcInputGradients + outputs
    return samples * outputs * (8 * fed + 6)


@library_call("POPNN")
def getBasicLstmCellWuFlops(params: LstmParams) -> int:
    """Count the operations of the gradients of the weights.

    >>> from simulator import poplar, popnn
    >>> params = popnn.lstm.LstmParams(poplar.FLOAT, 1, 1, [2, 3])
    >>> popnn.getBasicLstmCellWuFlops(params)  # 3 * 8 * 6
    144
    """
    samples, inputs, outputs = _steps(params)
    return samples * outputs * 8 * (inputs + outputs + 1)


@library_call("POPNN")
def getBasicGruCellFwdFlops(params: GruParams) -> int:
    """Count the operations of the forward pass: three products, 5 more an output.

    >>> from simulator import poplar, popnn
    >>> params = popnn.gru.GruParams(poplar.FLOAT, 1, 1, [2, 3])
    >>> popnn.getBasicGruCellFwdFlops(params)  # 3 * (6 * 5 + 5)
    105
    """
    samples, inputs, outputs = _steps(params)
    return samples * outputs * (6 * (inputs + outputs) + 5)


@library_call("POPNN")
def getBasicGruCellBwdFlops(params: GruParams) -> int:
    """Count the operations of the backward pass.

    >>> from simulator import poplar, popnn
    >>> params = popnn.gru.GruParams(poplar.FLOAT, 1, 1, [2, 3])
    >>> popnn.getBasicGruCellBwdFlops(params)  # 3 * (6 * 2 + 12 * 3 + 8)
    168
    """
    samples, inputs, outputs = _steps(params)
    return samples * outputs * (6 * inputs * params.calcInputGradients + 12 * outputs + 8)


@library_call("POPNN")
def getBasicGruCellWuFlops(params: GruParams) -> int:
    """Count the operations of the gradients of the weights.

    >>> from simulator import poplar, popnn
    >>> params = popnn.gru.GruParams(poplar.FLOAT, 1, 1, [2, 3])
    >>> popnn.getBasicGruCellWuFlops(params)  # 3 * 6 * 6
    108
    """
    samples, inputs, outputs = _steps(params)
    return samples * outputs * 6 * (inputs + outputs + 1)
