"""What a convolution computes: the parameters that users give (PopLibs' poplin/ConvParams.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from simulator.graph.errors import poplibs_error
from simulator.graph.types import FLOAT, HALF, Type
from simulator.logging import library_call

Sizes = tuple[int, ...]


class _Numbers:
    """Fields that are set as lists and kept as tuples, so that parameters stay hashable."""

    __slots__ = ()

    def __setattr__(self, name: str, numbers: Sequence[int]) -> None:
        object.__setattr__(self, name, tuple(numbers))


@dataclass(slots=True, unsafe_hash=True)
class InputTransform(_Numbers):
    """What is done to the input's field or the kernel first, in this order; by dimension.

    Elements are cut off, zeros put between the others (a dilation of 2 puts one), zeros added, and
    the order turned round. Nothing given stands for no change in any dimension.
    """

    truncationLower: Sequence[int] = ()
    truncationUpper: Sequence[int] = ()
    dilation: Sequence[int] = ()
    paddingLower: Sequence[int] = ()
    paddingUpper: Sequence[int] = ()
    flip: Sequence[bool] = ()

    def size_of(self, size: int, axis: int) -> int:
        """Return the size of a dimension of this size after the transform."""
        size_kept = size - self.truncationLower[axis] - self.truncationUpper[axis]
        spread = (size_kept - 1) * self.dilation[axis] + 1 if size_kept > 0 else size_kept
        return spread + self.paddingLower[axis] + self.paddingUpper[axis]


@dataclass(slots=True, unsafe_hash=True)
class OutputTransform(_Numbers):
    """What is done to the output's field last, in this order; by dimension."""

    truncationLower: Sequence[int] = ()
    truncationUpper: Sequence[int] = ()
    stride: Sequence[int] = ()
    paddingLower: Sequence[int] = ()
    paddingUpper: Sequence[int] = ()

    def size_of(self, size: int, axis: int) -> int:
        """Return the size of a dimension of this size after the transform."""
        size_kept = size - self.truncationLower[axis] - self.truncationUpper[axis]
        steps = -(-size_kept // self.stride[axis])
        return steps + self.paddingLower[axis] + self.paddingUpper[axis]


T = TypeVar("T", InputTransform, OutputTransform)
_NEUTRAL = {"dilation": 1, "stride": 1, "flip": False}


class _TwoTypes(type):
    """Lets ConvParams be made with an input's and an output's type before its sizes."""

    def __call__(cls, dataType: Type, *sizes: object, **named: object) -> Any:
        if sizes and isinstance(sizes[0], Type):
            named, sizes = {"outputType": sizes[0], **named}, sizes[1:]
        return super().__call__(dataType, *sizes, **named)


@dataclass(unsafe_hash=True)
class ConvParams(metaclass=_TwoTypes):
    """A convolution of [batch, groups * inputs, *field].

    The weights are [groups, outputs, inputs, *kernel]. Raises poplibs_error for sizes that make
    no convolution; where no transform is given a kernel has to fit into its input once shapes are
    asked for, as transforms may be set until then.
    """

    dataType: Type
    batchSize: int
    inputFieldShape: Sequence[int]
    kernelShape: Sequence[int]
    inputChannelsPerConvGroup: int
    outputChannelsPerConvGroup: int
    numConvGroups: int = 1
    inputTransform: InputTransform = field(default_factory=InputTransform)
    kernelTransform: InputTransform = field(default_factory=InputTransform)
    outputTransform: OutputTransform = field(default_factory=OutputTransform)
    outputType: Type | None = None

    def __post_init__(self) -> None:
        fields, kernel = tuple(self.inputFieldShape), tuple(self.kernelShape)
        if len(fields) != len(kernel):
            raise poplibs_error(
                f"ConvParams: field {list(fields)} and kernel {list(kernel)} differ in dimensions"
            )
        _check_sizes(self, fields + kernel)
        self.inputFieldShape, self.kernelShape = fields, kernel
        plain = self.inputTransform, self.kernelTransform, self.outputTransform
        for name in ("inputTransform", "kernelTransform", "outputTransform"):
            setattr(self, name, _filled(getattr(self, name), len(fields), name))
        if plain != (InputTransform(), InputTransform(), OutputTransform()):
            self.check()

    def check(self) -> None:
        """Raise poplibs_error where transforms leave nothing, or the kernel does not fit."""
        for name in ("inputTransform", "kernelTransform", "outputTransform"):
            _filled(getattr(self, name), self.getNumFieldDims(), name)
        for axis, (size, width) in enumerate(
            zip(self.inputFieldShape, self.kernelShape, strict=True)
        ):
            _check_kept(self.inputTransform, f"dimension {axis}: an input", size, axis)
            _check_kept(self.kernelTransform, f"dimension {axis}: a kernel", width, axis)
            room = self._input(axis) - self._kernel(axis) + 1
            if room < 1:
                raise poplibs_error(
                    f"ConvParams: dimension {axis}: a kernel of {self._kernel(axis)} does not fit "
                    f"into an input of {self._input(axis)}"
                )
            _check_kept(self.outputTransform, f"dimension {axis}: an output", room, axis)

    def _input(self, axis: int) -> int:
        return self.inputTransform.size_of(self.inputFieldShape[axis], axis)

    def _kernel(self, axis: int) -> int:
        return self.kernelTransform.size_of(self.kernelShape[axis], axis)

    @property
    def out_type(self) -> Type:
        """Return the type of the output."""
        return self.outputType or self.dataType

    def getNumFieldDims(self) -> int:
        return len(self.inputFieldShape)

    def getNumConvGroups(self) -> int:
        return self.numConvGroups

    def getNumInputChans(self) -> int:
        return self.inputChannelsPerConvGroup * self.numConvGroups

    def getNumOutputChans(self) -> int:
        return self.outputChannelsPerConvGroup * self.numConvGroups

    def getNumInputChansPerConvGroup(self) -> int:
        return self.inputChannelsPerConvGroup

    def getNumOutputChansPerConvGroup(self) -> int:
        return self.outputChannelsPerConvGroup

    def getOutputFieldShape(self) -> Sizes:
        """Return the size of each dimension of the output."""
        self.check()
        return tuple(
            self.outputTransform.size_of(self._input(axis) - self._kernel(axis) + 1, axis)
            for axis in range(len(self.kernelShape))
        )

    def input_shape(self) -> Sizes:
        """Return the shape of the input tensor."""
        self.check()
        return (self.batchSize, self.getNumInputChans(), *self.inputFieldShape)

    def weights_shape(self) -> Sizes:
        """Return the shape of the weights."""
        self.check()
        outputs, inputs = self.outputChannelsPerConvGroup, self.inputChannelsPerConvGroup
        return (self.numConvGroups, outputs, inputs, *self.kernelShape)

    def output_shape(self) -> Sizes:
        """Return the shape of the output tensor."""
        return (self.batchSize, self.getNumOutputChans(), *self.getOutputFieldShape())


def _check_sizes(params: ConvParams, sizes: Sizes) -> None:
    if params.dataType not in (FLOAT, HALF) or params.out_type not in (FLOAT, HALF):
        raise poplibs_error(
            f"ConvParams: data of type {params.dataType}, output of {params.out_type}; "
            "float or half is needed"
        )
    channels = (params.inputChannelsPerConvGroup, params.outputChannelsPerConvGroup)
    for size in (params.batchSize, params.numConvGroups, *channels, *sizes):
        if not isinstance(size, int) or size < 1:
            raise poplibs_error(f"ConvParams: a size of {size!r}; sizes are whole numbers from 1")


def _check_kept(
    transform: InputTransform | OutputTransform, operand_name: str, size: int, axis: int
) -> None:
    """Raise poplibs_error where truncation leaves nothing of a dimension."""
    cut = transform.truncationLower[axis], transform.truncationUpper[axis]
    if size <= sum(cut):
        raise poplibs_error(
            f"ConvParams: {operand_name} of {size} is truncated by {cut[0]} and {cut[1]}; "
            "at least 1 element has to be left"
        )


def _filled(transform: T, dimensions: int, operand_name: str) -> T:
    """Return a transform with a number for every dimension."""
    names = list(transform.__dataclass_fields__)
    values: dict[str, Any] = {}
    for name in names:
        numbers = tuple(getattr(transform, name)) or (_NEUTRAL.get(name, 0),) * dimensions
        if len(numbers) != dimensions:
            raise poplibs_error(
                f"ConvParams: {operand_name}.{name} is {list(numbers)}; {dimensions} "
                "numbers are needed"
            )
        least = _NEUTRAL.get(name, 0)
        if any(number < least for number in numbers):
            raise poplibs_error(
                f"ConvParams: {operand_name}.{name} is {list(numbers)}; at least {least}"
            )
        values[name] = numbers
    return replace(transform, **values)


def _transforms(
    params: ConvParams, function: str
) -> tuple[InputTransform, InputTransform, OutputTransform]:
    """Return the transforms of a convolution whose gradient is a convolution too."""
    if any(params.inputTransform.flip) or any(params.kernelTransform.flip):
        raise poplibs_error(f"{function}: of a flipped input or kernel; flip the tensor instead")
    return params.inputTransform, params.kernelTransform, params.outputTransform


@library_call("POPLIN")
def getGradientParams(params: ConvParams) -> ConvParams:
    """Return the convolution of the output's gradient with the flipped weights: the backward pass.

    What the forward pass skips by its stride is zeros between the gradients; its padding becomes
    truncation of the result and the other way round.

    >>> from simulator import poplar, poplin
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> back = poplin.getGradientParams(params)
    >>> back.inputFieldShape, back.getOutputFieldShape()
    ((3,), (4,))
    """
    fwd_in, fwd_kernel, fwd_out = _transforms(params, "getGradientParams")
    dims = range(params.getNumFieldDims())
    full = [params._input(axis) - params._kernel(axis) + 1 for axis in dims]
    kernel = [params._kernel(axis) for axis in dims]
    out = params.getOutputFieldShape()
    inner = [out[a] - fwd_out.paddingLower[a] - fwd_out.paddingUpper[a] for a in dims]
    covered = [(inner[a] - 1) * fwd_out.stride[a] + 1 + fwd_out.truncationLower[a] for a in dims]
    return ConvParams(
        params.dataType,
        params.batchSize,
        out,
        params.kernelShape,
        params.outputChannelsPerConvGroup,
        params.inputChannelsPerConvGroup,
        params.numConvGroups,
        InputTransform(
            truncationLower=fwd_out.paddingLower,
            truncationUpper=fwd_out.paddingUpper,
            dilation=fwd_out.stride,
            paddingLower=[fwd_out.truncationLower[a] + kernel[a] - 1 for a in dims],
            paddingUpper=[full[a] - covered[a] + kernel[a] - 1 for a in dims],
        ),
        InputTransform(  # of the kernel turned round
            truncationLower=fwd_kernel.truncationUpper,
            truncationUpper=fwd_kernel.truncationLower,
            dilation=fwd_kernel.dilation,
            paddingLower=fwd_kernel.paddingUpper,
            paddingUpper=fwd_kernel.paddingLower,
            flip=fwd_kernel.flip,
        ),
        OutputTransform(
            truncationLower=fwd_in.paddingLower,
            truncationUpper=fwd_in.paddingUpper,
            stride=fwd_in.dilation,
            paddingLower=fwd_in.truncationLower,
            paddingUpper=fwd_in.truncationUpper,
        ),
        params.outputType,
    )


@library_call("POPLIN")
def getWeightUpdateParams(params: ConvParams) -> ConvParams:
    """Return the convolution of the activations with the output's gradient: the weights' gradient.

    Its batch are the input channels, its input channels the batch; the gradient is its kernel.

    >>> from simulator import poplar, poplin
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> update = poplin.getWeightUpdateParams(params)
    >>> update.kernelShape, update.getOutputFieldShape()
    ((3,), (2,))
    """
    fwd_in, fwd_kernel, fwd_out = _transforms(params, "getWeightUpdateParams")
    dims = range(params.getNumFieldDims())
    out = params.getOutputFieldShape()
    inner = [out[a] - fwd_out.paddingLower[a] - fwd_out.paddingUpper[a] for a in dims]
    full = [params._input(axis) - params._kernel(axis) + 1 for axis in dims]
    covered = [fwd_out.truncationLower[a] + (inner[a] - 1) * fwd_out.stride[a] + 1 for a in dims]
    return ConvParams(
        params.dataType,
        params.inputChannelsPerConvGroup,
        params.inputFieldShape,
        out,
        params.batchSize,
        params.outputChannelsPerConvGroup,
        params.numConvGroups,
        fwd_in,
        InputTransform(
            truncationLower=fwd_out.paddingLower,
            truncationUpper=fwd_out.paddingUpper,
            dilation=fwd_out.stride,
            paddingLower=fwd_out.truncationLower,
            paddingUpper=[full[a] - covered[a] for a in dims],
        ),
        OutputTransform(
            truncationLower=fwd_kernel.paddingLower,
            truncationUpper=fwd_kernel.paddingUpper,
            stride=fwd_kernel.dilation,
            paddingLower=fwd_kernel.truncationLower,
            paddingUpper=fwd_kernel.truncationUpper,
        ),
        params.outputType,
    )
