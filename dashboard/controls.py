"""Controls whose value is a key of the address: no page needs a callback for them.

    controls.choice("breakdown", (("none", "None"), ("region", "By region")), chosen)
    controls.select("order", CHOICES, chosen, label="Order")  # a drop-down, for many choices
    controls.switch("gaps", "Include gaps", chosen)            # gaps=off (or on) in the link
    controls.box("tile", "Tiles, e.g. 3, 17, 100-120", chosen) # as typed, on Enter
    controls.filter_box("name", "Filter variables", chosen)    # filter=name~typed
    controls.tabs(TABS, chosen)                                # tab=...; the page fills a panel
    controls.split(above, below)                               # two panes and a grip between them
    controls.exports("memory-by-tile", "memory-plot")          # the data as CSV and Parquet (see
                                                               # `downloads`), the plot as PNG, SVG

What is chosen by default does not stand in the link. The page reads it with `state.option(key,
values)` and passes the same choices here. Going back in the history sets the controls back, too.
A tab takes (value, words, why not): with a reason it is grey, and the reason shows on hover.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, ClientsideFunction, Dash, Input, State, html

from dashboard.address import Address, ranges
from dashboard.declared import hint
from dashboard.elements.components import Element

Choices = Sequence[tuple[str, str]]


def _data(choices: Choices) -> list[dict[str, str]]:
    return [{"value": value, "label": words} for value, words in choices]


def _now(state: Address, key: str, default: str) -> str:
    """Return what the link says of a key, of the default without it."""
    fields = {
        "show": state.show,
        "against": state.against,
        "ipu": "" if state.ipu is None else str(state.ipu),
    }
    return fields.get(key, state.text(key)) or default


def _hinted(control: Element, state: Address, key: str) -> Element:
    """Return on hover what a control does."""
    words = hint(state.path, key)
    return html.Div(control, className="hinted", title=words) if words else control


def choice(key: str, choices: Choices, state: Address, *, label: str = "") -> Element:
    """Choose one of a few, which stand beside each other; the first is the default."""
    default = choices[0][0]
    control = dmc.SegmentedControl(
        id={"address": key, "default": default, "page": state.path},
        data=_data(choices),
        value=_now(state, key, default),
        size="xs",
        **{"aria-label": label or key},
    )
    return _hinted(control, state, key)


def select(key: str, choices: Choices, state: Address, *, label: str, width: int = 150) -> Element:
    """Choose one of many from a drop-down with a search; the first is the default."""
    default = choices[0][0]
    control = dmc.Select(
        id={"address": key, "default": default, "page": state.path},
        data=_data(choices),
        value=_now(state, key, default),
        allowDeselect=False,
        searchable=len(choices) > 8,
        size="xs",
        w=width,
        **{"aria-label": label},
    )
    return _hinted(control, state, key)


def switch(key: str, words: str, state: Address, *, on: bool = False) -> Element:
    """Choose on or off; `on` is the default."""
    default = "on" if on else "off"
    control = dmc.Switch(
        id={"switch": key, "default": default, "page": state.path},
        label=words,
        checked=_now(state, key, default) == "on",
        size="xs",
    )
    return _hinted(control, state, key)


def box(key: str, words: str, state: Address, *, width: int = 210, column: str = "") -> Element:
    """Type the value of a key; it is taken on Enter and when the box is left."""
    control = dmc.TextInput(
        id={"box": key, "column": column, "page": state.path},
        value=typed(state, key, column),
        placeholder=words,
        debounce=True,
        size="xs",
        w=width,
        **{"aria-label": words},
    )
    return _hinted(control, state, key)


def typed(state: Address, key: str, column: str = "") -> str:
    """Return the text of a box as the link has it."""
    if column:
        row_filter = state.filter
        return (
            row_filter.value
            if row_filter and (row_filter.column, row_filter.operator) == (column, "~")
            else ""
        )
    numbers = {"tile": state.tiles, "step": state.steps}
    if key in numbers:
        return ranges(numbers[key]).replace(",", ", ")
    return state.text(key)


def filter_box(column: str, words: str, state: Address, *, width: int = 190) -> Element:
    """Type a text that rows must have in a column; the key `/` leads here."""
    return box("filter", words, state, width=width, column=column)


Tab = tuple[str, str] | tuple[str, str, str]


def tabs(choices: Sequence[Tab], state: Address, *, key: str = "tab") -> Element:
    """List tabs; the page fills its panel with what `state.option(key, values)` names."""
    default = choices[0][0]
    return dmc.Tabs(
        dmc.TabsList([_tab(*entry) for entry in choices]),
        id={"address": key, "default": default, "page": state.path},
        value=_now(state, key, default),
        className="tabs",
    )


def _tab(value: str, words: str, why_not: str = "") -> Element:
    if not why_not:
        return dmc.TabsTab(words, value=value)
    return dmc.TabsTab(html.Span(words, title=why_not), value=value, disabled=True)


def split(above: Element, below: Element, *, name: str = "split") -> Element:
    """Put one pane above the other; the grip between them is dragged, or moved by the keys."""
    grip = html.Div(
        className="grip", tabIndex="0", role="separator", title="Drag to resize",
        **{"aria-label": "Height of the upper pane", "aria-orientation": "horizontal"},
    )  # fmt: skip
    return html.Div(
        [html.Div(above, className="pane-above"), grip, html.Div(below, className="pane-below")],
        className="split",
        **{"data-split": name},
    )


def exports(data: str = "", plot: str = "") -> Element:
    """Offer the data of a view as CSV and Parquet, and its plot as PNG and SVG."""
    entries: list[Element] = []
    if data:
        entries += [
            html.A(words, href=f"/download/{data}.{suffix}", **{"data-download": data})
            for suffix, words in (("csv", "Data as CSV"), ("parquet", "Data as Parquet"))
        ]
    if plot:
        entries += [
            html.Button(words, **{"data-save": kind, "data-plot": plot})
            for kind, words in (("png", "Plot as PNG"), ("svg", "Plot as SVG"))
        ]
    return html.Details(
        [html.Summary("Save", title="Save data or plot"), html.Div(entries, className="menu")],
        className="exports",
    )


def row(items: Iterable[Element]) -> Element:
    """Put controls beside each other."""
    return html.Div(list(items), className="tools-row")


def register(app: Dash) -> None:
    """Register the controls that write the address; `view.register` makes them follow it."""
    boxes: Any = {"box": ALL, "column": ALL, "page": ALL}
    for function, inputs in (
        ("setChoice", [Input({"address": ALL, "default": ALL, "page": ALL}, "value")]),
        ("setSwitch", [Input({"switch": ALL, "default": ALL, "page": ALL}, "checked")]),
        ("setBox", [Input(boxes, "n_submit"), Input(boxes, "n_blur"), State(boxes, "value"),
                    State(boxes, "id")]),
    ):  # fmt: skip
        app.clientside_callback(
            ClientsideFunction("tilescope", function), *inputs, prevent_initial_call=True
        )
