"""PopART's names: ONNX models on the simulator.

session = popart.InferenceSession("model.onnx", popart.DataFlow(1, ["out"]), device)
"""

from __future__ import annotations

from simulator.graph.errors import MissingPackageError
from simulator.graph.errors import PoplarError as poplar_exception  # noqa: N813 - PopART's name
from simulator.graph.errors import application_runtime_error as poplar_runtime_error

try:
    import onnx as _onnx  # noqa: F401 - asked for first, so that the error says what to install
except ImportError:
    raise MissingPackageError("popart needs onnx: pip install 'tilescope[popart]'") from None

from simulator.popart.backpropagation.losses import IdentityLoss, L1Loss, NllLoss, ReductionType
from simulator.popart.errors import popart_exception
from simulator.popart.importing.transformer import GraphTransformer
from simulator.popart.logging import Logger, getLogger
from simulator.popart.model_builder.builder import (
    Builder,
    defaultAiGraphcoreOpset,
    defaultAiOnnxOpset,
)
from simulator.popart.optimizers import (
    SGD,
    Adam,
    AdamMode,
    Adaptive,
    AdaptiveMode,
    ClipNormSettings,
    ConstSGD,
    DataType,
    Optimizer,
    OptimizerValue,
    SGDAccumulatorAndMomentum,
    WeightDecayMode,
)
from simulator.popart.representation.patterns import Patterns, PatternsLevel
from simulator.popart.representation.tensor_info import InputShapeInfo, TensorInfo
from simulator.popart.session import InferenceSession
from simulator.popart.sessions.options import SessionOptions
from simulator.popart.sessions.weights import PyWeightsIO
from simulator.popart.settings.choices import (
    AccumulateOuterFragmentSchedule,
    AutodiffStitchStrategy,
    BatchSerializationBatchSchedule,
    BatchSerializationMethod,
    BatchSerializationTransformContext,
    CollectiveOperator,
    CommGroup,
    CommGroupType,
    DeviceType,
    ExecutionPhaseIOSchedule,
    ExecutionPhaseSchedule,
    GradientTensorTrackingMethod,
    IrSerializationFormat,
    ReplicatedStreamMode,
    ReplicatedTensorSharding,
    SubgraphCopyingStrategy,
    TensorLocation,
    TensorLocationSettings,
    TensorRemapType,
    TensorStorage,
    VariableRetrievalMode,
)
from simulator.popart.settings.dataflow import (
    AnchorReturnType,
    DataFlow,
    PyStepIO,
    PyStepIOCallback,
)
from simulator.popart.settings.debug_info import (
    DebugContext,
    DebugInfo,
    closePoplarDebugInfo,
    initializePoplarDebugInfo,
)
from simulator.popart.settings.devices import DeviceInfo, DeviceManager
from simulator.popart.settings.input_settings import ExchangeStrategy, InputSettings, TileSet
from simulator.popart.settings.names import (
    DeviceConnectionType,
    DeviceSelectionCriterion,
    DotCheck,
    InitType,
    Instrumentation,
    MeanReductionStrategy,
    RecomputationType,
    RecomputeType,
    ScatterReduction,
    SyncPattern,
    SyntheticDataMode,
    VirtualGraphMode,
    reservedAccl1Prefix,
    reservedAccl2Prefix,
    reservedAccl3Prefix,
    reservedAcclFinalOutPrefix,
    reservedAcclPrefix,
    reservedAcclToReducePrefix,
    reservedAcclToUpdatePrefix,
    reservedAccumPrefix,
    reservedDefaultScaledLearningRate0Prefix,
    reservedDefaultWeightDecayScaleFactor0Prefix,
    reservedGradientPrefix,
    reservedLossScalingPrefix,
    reservedRemoteArgPrefix,
    reservedRestoredPrefix,
    reservedStashedPrefix,
    reservedStepPrefix,
    reservedUpdatedVarPrefix,
)
from simulator.popart.supported import getSupportedOperations, getUnsupportedOperations
from simulator.popart.training import TrainingSession
from simulator.popart.variable_settings import VariableSettings

__all__ = [
    "AccumulateOuterFragmentSchedule",
    "AutodiffStitchStrategy",
    "BatchSerializationBatchSchedule",
    "BatchSerializationMethod",
    "BatchSerializationTransformContext",
    "CollectiveOperator",
    "CommGroup",
    "CommGroupType",
    "DeviceType",
    "ExecutionPhaseIOSchedule",
    "ExecutionPhaseSchedule",
    "GradientTensorTrackingMethod",
    "IrSerializationFormat",
    "ReplicatedStreamMode",
    "ReplicatedTensorSharding",
    "SubgraphCopyingStrategy",
    "TensorLocation",
    "TensorLocationSettings",
    "TensorRemapType",
    "TensorStorage",
    "VariableRetrievalMode",
    "VariableSettings",
    "reservedRestoredPrefix",
    "reservedStashedPrefix",
    "reservedUpdatedVarPrefix",
    "reservedRemoteArgPrefix",
    "reservedLossScalingPrefix",
    "getSupportedOperations",
    "getUnsupportedOperations",
    "poplar_exception",
    "poplar_runtime_error",
    "SGD",
    "Adam",
    "AdamMode",
    "Adaptive",
    "AdaptiveMode",
    "AnchorReturnType",
    "Builder",
    "ClipNormSettings",
    "ConstSGD",
    "DataFlow",
    "DataType",
    "DebugContext",
    "DebugInfo",
    "DeviceInfo",
    "DeviceManager",
    "ExchangeStrategy",
    "GraphTransformer",
    "IdentityLoss",
    "InferenceSession",
    "InputSettings",
    "InputShapeInfo",
    "Instrumentation",
    "L1Loss",
    "Logger",
    "NllLoss",
    "Optimizer",
    "OptimizerValue",
    "Patterns",
    "PatternsLevel",
    "PyStepIO",
    "RecomputationType",
    "RecomputeType",
    "ReductionType",
    "SGDAccumulatorAndMomentum",
    "ScatterReduction",
    "SessionOptions",
    "TensorInfo",
    "TileSet",
    "TrainingSession",
    "WeightDecayMode",
    "closePoplarDebugInfo",
    "initializePoplarDebugInfo",
    "reservedDefaultScaledLearningRate0Prefix",
    "reservedDefaultWeightDecayScaleFactor0Prefix",
    "defaultAiGraphcoreOpset",
    "defaultAiOnnxOpset",
    "getLogger",
    "popart_exception",
    "PyStepIOCallback",
    "PyWeightsIO",
    "DeviceConnectionType",
    "DeviceSelectionCriterion",
    "DotCheck",
    "InitType",
    "MeanReductionStrategy",
    "SyncPattern",
    "SyntheticDataMode",
    "VirtualGraphMode",
    "reservedAccl1Prefix",
    "reservedAccl2Prefix",
    "reservedAccl3Prefix",
    "reservedAcclFinalOutPrefix",
    "reservedAcclToReducePrefix",
    "reservedAcclToUpdatePrefix",
    "reservedAcclPrefix",
    "reservedAccumPrefix",
    "reservedGradientPrefix",
    "reservedStepPrefix",
]
