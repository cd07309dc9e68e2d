"""Long lists of whole numbers in JSON are read without a Python object for each."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pva import kernels
from pva.formats.documents import json_numbers
from pva.formats.memory_limit import Budget

INTS = st.integers(-(2**63), 2**64)
VALUES = st.recursive(
    st.none() | st.booleans() | INTS | st.floats(allow_nan=False) | st.text("[],1 -x", max_size=5),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)


def decoded(text: bytes) -> Any:
    return json_numbers.decoded(text, Budget("text", len(text)))


def as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_lists(part) for key, part in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


@example(value=[[1], []], indent=None)
@example(value=[[0], [], []], indent=None)
@example(value=[[0], [], [1]], indent=1)
@example(value=[[], []], indent=None)
@given(value=st.lists(VALUES, max_size=4), indent=st.sampled_from([None, 1]))
def test_what_is_taken_for_numbers_is_what_json_says(value: list[Any], indent: int | None) -> None:
    found = json_numbers.numbers_in(json.dumps(value, indent=indent).encode())
    if found is not None:
        assert found.tolist() == value
    elif value and all(type(item) is int and abs(item) < 2**63 - 1 for item in value):
        raise AssertionError("a list of numbers was not taken")


@pytest.mark.skipif(kernels.compiled is None, reason="not built")
@example(value=[-(2**63) + 1, 2**63 - 2], indent=None, at_once=1)
@example(value=[[1, -2], [3, 400]], indent=1, at_once=1)
@given(
    value=st.lists(INTS) | st.lists(st.lists(INTS, min_size=2, max_size=2)),
    indent=st.sampled_from([None, 1]),
    at_once=st.sampled_from([1, 8, 1000]),
)
def test_numbers_read_in_c_are_those_read_by_numpy(
    value: list[Any], indent: int | None, at_once: int
) -> None:
    text = json.dumps(value, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_numbers, "MANY", at_once)
        fast = json_numbers._numbers_in_c(text)
        patch.setattr(kernels, "compiled", None)
        slow = json_numbers.numbers_in(text)
    if fast is None:  # for NumPy, as numbers at the limits are
        large = any(abs(number) >= 2**63 - 1 for number in np.ravel(np.array(value, object)))
        assert slow is None or large
    else:
        assert slow is not None
        assert (fast.tolist(), fast.dtype) == (slow.tolist(), slow.dtype)


NO_LISTS = (
    b"[1 2];[01];[1,];[-];[1]];[[1],2];[1.5];[;[1;[[1;[[1];[[1],[2,3]];[99999999999999999999]"
)


@pytest.mark.parametrize("text", NO_LISTS.split(b";"))
def test_what_is_no_list_of_numbers_is_not_taken_in_c(text: bytes) -> None:
    assert kernels.compiled is None or json_numbers._numbers_in_c(text) is None


@pytest.mark.parametrize("shape", [(3000,), (50, 60)])
def test_long_lists_become_arrays_wherever_they_stand(shape: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(0).integers(-(2**40), 2**40, shape)
    text = json.dumps({"a": {"b": numbers.tolist(), "c": "[1,2]"}, "b": [1, 2]}).encode()
    found = decoded(text)
    assert isinstance(found["a"]["b"], np.ndarray)
    assert as_lists(found) == json.loads(text)


@pytest.mark.parametrize("tail", [b'"a" 1}', b'"a": [1,}', b'"a": "\xff"}'])
def test_a_fault_is_told_by_its_place_in_the_whole_text(tail: bytes) -> None:
    text = b'{"numbers": {"of": [' + b"1," * 5000 + b"1]}, " + tail
    faults = []
    for decode in (decoded, msgspec.json.decode):
        with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)) as caught:
            decode(text)
        faults.append(str(caught.value))
    assert faults[0] == faults[1]


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(RecursionError):
        decoded(b'{"a":' * 200_000 + b"1" + b"}" * 200_000)
