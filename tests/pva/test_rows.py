"""A row and a sequence of rows are the same from C and from Python."""

from __future__ import annotations

import copy
import gc
import importlib.util
import operator
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from pva.model import rows


def _module(monkeypatch: pytest.MonkeyPatch, kernels: str) -> Any:
    monkeypatch.setenv("PVA_KERNELS", kernels)
    spec = importlib.util.find_spec(rows.__name__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["0", "1"])
def classes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = _module(monkeypatch, request.param)
    if request.param == "1" and getattr(module, "compiled", None) is None:
        pytest.skip("no compiler was here")

    class Item(module.Row):  # type: ignore[misc, name-defined]
        __slots__ = ()

    class Named(Item):
        __slots__ = ("_name",)

        def __init__(self, data: object, row: int, name: str) -> None:
            super().__init__(data, row)
            self._name = name

    class Items(module.Rows):  # type: ignore[misc, name-defined]
        __slots__ = ()

        def _outside(self, place: object) -> IndexError:
            return IndexError(f"{place} of {len(self)}")

    return Item, Named, Items


def test_a_row_holds_its_dataset_and_its_number(classes: Any) -> None:
    item, named, _ = classes
    data = object()
    assert (item(data, 3)._data, item(data, -3)._row) == (data, -3)
    one = copy.copy(named(data, 4, "four"))
    assert (type(one), one._data, one._row, one._name) == (named, data, 4, "four")
    with pytest.raises(TypeError):
        item(data)
    with pytest.raises(TypeError):
        item(data, 1, 2)
    with pytest.raises(AttributeError):
        _ = item.__new__(item)._data


def test_items_are_made_when_they_are_asked_for(classes: Any) -> None:
    *_, items = classes
    made = items(range(10, 20), str)
    assert (len(made), made[0], made[-1], list(made)) == (
        10,
        "10",
        "19",
        list(map(str, made._rows)),
    )
    part = made[2:8:3]
    assert (type(part), list(part), part[1]) == (items, ["12", "15"], "15")
    assert list(copy.copy(items([4, 2], str))) == ["4", "2"]


@pytest.mark.parametrize("place", [10, -11, 1 << 70])
def test_a_place_outside_is_the_error_of_the_class(classes: Any, place: int) -> None:
    *_, items = classes
    with pytest.raises(IndexError, match=f"^{place} of 10$") as caught:
        items(range(10), str)[place]
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize(
    "misuse",
    [
        lambda items: items(range(3), str)["a"],
        lambda items: items(3, str)[0],
        lambda items: len(items(3, str)),
        lambda items: items(3),
    ],
)
def test_what_is_no_place_and_no_sequence_is_a_type_error(
    classes: Any, misuse: Callable[[Any], object]
) -> None:
    with pytest.raises(TypeError):
        misuse(classes[2])


def test_errors_of_what_makes_an_item_go_through(classes: Any) -> None:
    made = classes[2](range(3), lambda row: operator.truediv(1, row))
    with pytest.raises(ZeroDivisionError):
        list(made)
    with pytest.raises(AttributeError):
        len(classes[2].__new__(classes[2]))


def test_circles_through_a_row_and_through_items_are_collected(classes: Any) -> None:
    item, _, items = classes

    class Data:
        held: Any

    def circle() -> weakref.ref[Data]:
        data = Data()
        data.held = [item(data, 0), items([0], lambda row: item(data, row))]
        return weakref.ref(data)

    gone = circle()
    gc.collect()
    assert gone() is None
