"""The operators under PopLibs' names: a new result, in place of the first operand, to an output.

Operands are broadcast by NumPy's rules; all but one of them may be numbers.
"""

from __future__ import annotations

from simulator.poplibs.popops.operator_functions import binary as _binary
from simulator.poplibs.popops.operator_functions import ternary as _ternary
from simulator.poplibs.popops.operator_functions import unary as _unary

abs, absInPlace, absWithOutput = _unary("abs", "ABSOLUTE")
absolute = abs  # where Python's own would be hidden
asin, asinInPlace, asinWithOutput = _unary("asin", "ASIN")
bitwiseNot, bitwiseNotInPlace, bitwiseNotWithOutput = _unary("bitwiseNot", "BITWISE_NOT")
cbrt, cbrtInPlace, cbrtWithOutput = _unary("cbrt", "CBRT")
ceil, ceilInPlace, ceilWithOutput = _unary("ceil", "CEIL")
cos, cosInPlace, cosWithOutput = _unary("cos", "COS")
countLeadingZeros, countLeadingZerosInPlace, countLeadingZerosWithOutput = _unary(
    "countLeadingZeros", "COUNT_LEADING_ZEROS"
)
erf, erfInPlace, erfWithOutput = _unary("erf", "ERF")
exp, expInPlace, expWithOutput = _unary("exp", "EXPONENT")
expm1, expm1InPlace, expm1WithOutput = _unary("expm1", "EXPONENT_MINUS_ONE")
floor, floorInPlace, floorWithOutput = _unary("floor", "FLOOR")
geluErf, geluErfInPlace, geluErfWithOutput = _unary("geluErf", "GELU_ERF")
inv, invInPlace, invWithOutput = _unary("inv", "INVERSE")
isFinite, _, isFiniteWithOutput = _unary("isFinite", "IS_FINITE")
isInf, _, isInfWithOutput = _unary("isInf", "IS_INF")
isNaN, _, isNaNWithOutput = _unary("isNaN", "IS_NAN")
log, logInPlace, logWithOutput = _unary("log", "LOGARITHM")
log1p, log1pInPlace, log1pWithOutput = _unary("log1p", "LOGARITHM_ONE_PLUS")
logicalNot, logicalNotInPlace, logicalNotWithOutput = _unary("logicalNot", "LOGICAL_NOT")
nearbyInt, nearbyIntInPlace, nearbyIntWithOutput = _unary("nearbyInt", "NEARBY_INT")
neg, negInPlace, negWithOutput = _unary("neg", "NEGATE")
popcount, popcountInPlace, popcountWithOutput = _unary("popcount", "POPCOUNT")
relu, reluInPlace, reluWithOutput = _unary("relu", "RELU")
round, roundInPlace, roundWithOutput = _unary("round", "ROUND")
rsqrt, rsqrtInPlace, rsqrtWithOutput = _unary("rsqrt", "RSQRT")
sigmoid, sigmoidInPlace, sigmoidWithOutput = _unary("sigmoid", "SIGMOID")
signum, signumInPlace, signumWithOutput = _unary("signum", "SIGNUM")
sin, sinInPlace, sinWithOutput = _unary("sin", "SIN")
sqrt, sqrtInPlace, sqrtWithOutput = _unary("sqrt", "SQRT")
square, squareInPlace, squareWithOutput = _unary("square", "SQUARE")
tan, tanInPlace, tanWithOutput = _unary("tan", "TAN")
tanh, tanhInPlace, tanhWithOutput = _unary("tanh", "TANH")
trunc, truncInPlace, truncWithOutput = _unary("trunc", "TRUNC")

add, addInPlace, addWithOutput = _binary("add", "ADD")
atan2, atan2InPlace, atan2WithOutput = _binary("atan2", "ATAN2")
bitwiseAnd, bitwiseAndInPlace, bitwiseAndWithOutput = _binary("bitwiseAnd", "BITWISE_AND")
bitwiseOr, bitwiseOrInPlace, bitwiseOrWithOutput = _binary("bitwiseOr", "BITWISE_OR")
bitwiseXnor, bitwiseXnorInPlace, bitwiseXnorWithOutput = _binary("bitwiseXnor", "BITWISE_XNOR")
bitwiseXor, bitwiseXorInPlace, bitwiseXorWithOutput = _binary("bitwiseXor", "BITWISE_XOR")
div, divInPlace, divWithOutput = _binary("div", "DIVIDE")
eq, eqInPlace, eqWithOutput = _binary("eq", "EQUAL")
gt, gtInPlace, gtWithOutput = _binary("gt", "GREATER_THAN")
gteq, gteqInPlace, gteqWithOutput = _binary("gteq", "GREATER_THAN_EQUAL")
invStdDevToVariance, invStdDevToVarianceInPlace, invStdDevToVarianceWithOutput = _binary(
    "invStdDevToVariance", "INV_STD_DEV_TO_VARIANCE"
)
logicalAnd, logicalAndInPlace, logicalAndWithOutput = _binary("logicalAnd", "LOGICAL_AND")
logicalOr, logicalOrInPlace, logicalOrWithOutput = _binary("logicalOr", "LOGICAL_OR")
lt, ltInPlace, ltWithOutput = _binary("lt", "LESS_THAN")
lteq, lteqInPlace, lteqWithOutput = _binary("lteq", "LESS_THAN_EQUAL")
max, maxInPlace, maxWithOutput = _binary("max", "MAXIMUM")
min, minInPlace, minWithOutput = _binary("min", "MINIMUM")
mul, mulInPlace, mulWithOutput = _binary("mul", "MULTIPLY")
neq, neqInPlace, neqWithOutput = _binary("neq", "NOT_EQUAL")
pow, powInPlace, powWithOutput = _binary("pow", "POWER")
rem, remInPlace, remWithOutput = _binary("rem", "REMAINDER")
shiftLeft, shiftLeftInPlace, shiftLeftWithOutput = _binary("shiftLeft", "SHIFT_LEFT")
shiftRight, shiftRightInPlace, shiftRightWithOutput = _binary("shiftRight", "SHIFT_RIGHT")
shiftRightSignExtend, shiftRightSignExtendInPlace, shiftRightSignExtendWithOutput = _binary(
    "shiftRightSignExtend", "SHIFT_RIGHT_SIGN_EXTEND"
)
sub, subInPlace, subWithOutput = _binary("sub", "SUBTRACT")
varianceToInvStdDev, varianceToInvStdDevInPlace, varianceToInvStdDevWithOutput = _binary(
    "varianceToInvStdDev", "VARIANCE_TO_INV_STD_DEV"
)

clamp, clampInPlace, clampWithOutput = _ternary("clamp", "CLAMP")
select, selectInPlace, selectWithOutput = _ternary("select", "SELECT")
