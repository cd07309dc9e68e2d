"""Colours and type, once: the tokens that plots, style sheet and canvas share.

The hues of program steps are those that users of PopVision know. Categories of memory take theirs
from Paul Tol's qualitative schemes, which stay apart under colour blindness.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = get_args(Theme)

FONT = 'Inter, "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif'

# token: (light, dark). The style sheet and timeline.js know them as --token.
TOKENS: dict[str, tuple[str, str]] = {
    "page": ("#f6f7f9", "#14171c"),
    "surface": ("#ffffff", "#1c2027"),
    "raised": ("#f1f3f6", "#252a33"),
    "line": ("#dfe3e8", "#333a45"),
    "grid": ("#e9ecf0", "#2a303a"),
    "text": ("#1d232b", "#e8ebef"),
    "quiet": ("#5b6673", "#a0abb8"),
    "accent": ("#1f5fbf", "#7fb2ff"),
    "accent-soft": ("#e6effb", "#22324a"),
    "good": ("#1b7f4d", "#5fd39b"),
    "bad": ("#b3261e", "#ff8a80"),
    "on-colour": ("#1d232b", "#14171c"),
    "memory": ("#d9475a", "#ff7b8b"),
    "memory-fill": ("rgba(246, 98, 113, 0.16)", "rgba(255, 123, 139, 0.20)"),
    "always-live": ("#d9475a", "#ff7b8b"),
    "always-live-fill": ("rgba(246, 98, 113, 0.22)", "rgba(255, 123, 139, 0.26)"),
    "not-always-live": ("#4a5fc1", "#93a5ff"),
    "not-always-live-fill": ("rgba(96, 116, 220, 0.18)", "rgba(147, 165, 255, 0.22)"),
    "region-non-interleaved": ("#4477aa", "#5b93cc"),
    "region-interleaved": ("#ccbb44", "#d3c35a"),
    "region-overflowed": ("#aa3377", "#d15a9d"),
    "region-gaps": ("#d5d9de", "#4b5460"),
    "before": ("#a35a00", "#f0a95b"),
    "before-fill": ("rgba(163, 90, 0, 0.14)", "rgba(240, 169, 91, 0.16)"),
    "after": ("#1f5fbf", "#7fb2ff"),
    "after-fill": ("rgba(31, 95, 191, 0.14)", "rgba(127, 178, 255, 0.16)"),
    "grew": ("#c2412f", "#ff8a80"),
    "shrank": ("#1b7f4d", "#5fd39b"),
    "limit": ("#1d232b", "#ffffff"),
    "run": ("#3a414c", "#d5dae1"),
    "layer": ("#fbd0d8", "#a8626f"),
    "idle": ("#eeeff1", "#20252d"),
    "related": ("#fdf3c4", "#423b1b"),
    "block": ("#8fb8e8", "#6d97cc"),
    "block-flush": ("#c9c2b4", "#8a8372"),
    "block-overflow": ("#b3261e", "#ff8a80"),
}

# Type of an executed step: (words, light, dark).
STEP_COLOURS: dict[str, tuple[str, str, str]] = {
    "OnTileExecute": ("Compute", "#f66271", "#ef6776"),
    "DoExchange": ("Internal exchange", "#a5dae3", "#6fbccb"),
    "GlobalExchange": ("Exchange between IPUs", "#9db8a5", "#8fb59b"),
    "Sync": ("Sync", "#f3de85", "#d9c259"),
    "StreamCopy": ("Stream copy", "#f2b797", "#dc996f"),
    "StreamCopyBegin": ("Stream copy, begin", "#d5d8dc", "#8d949e"),
    "StreamCopyEnd": ("Stream copy, end", "#efdca0", "#bfa95c"),
    "CopySharedStructure": ("Copy of a shared structure", "#b9c6f0", "#8797d6"),
    "SyncAns": ("Sync, answered later", "#d8c9a0", "#a3935c"),
    "Sans": ("Sync answer", "#c9c2b4", "#8a8372"),
}

# Type of a program that holds or steers others: (words, light, dark).
PROGRAM_COLOURS: dict[str, tuple[str, str, str]] = {
    "Sequence": ("Sequence", "#78c473", "#62ad5e"),
    "Repeat": ("Repeat", "#a78bd4", "#9a80c8"),
    "RepeatWhile": ("Repeat while", "#a78bd4", "#9a80c8"),
    "RepeatWhileTrue": ("Repeat while true", "#a78bd4", "#9a80c8"),
    "RepeatWhileFalse": ("Repeat while false", "#a78bd4", "#9a80c8"),
    "If": ("If", "#c98f4e", "#c08a4e"),
    "IfElse": ("If, else", "#c98f4e", "#c08a4e"),
    "Switch": ("Switch", "#c98f4e", "#c08a4e"),
    "OnEveryTileSwitch": ("Switch on every tile", "#c98f4e", "#c08a4e"),
    "Call": ("Call", "#3f9fa8", "#4fb0b8"),
    "SetLocalConsensusFromVar": ("Local consensus", "#b4b9c0", "#7d848e"),
    "WriteUndef": ("Write undefined", "#d5d8dc", "#8d949e"),
}
# Type of a program as it was written, before compilation: (words, light, dark).
WRITTEN_COLOURS: dict[str, tuple[str, str, str]] = {
    "Execute": ("Execute", "#f66271", "#ef6776"),
    "Copy": ("Copy", "#a5dae3", "#6fbccb"),
    "CrossReplicaCopy": ("Copy between replicas", "#9db8a5", "#8fb59b"),
    "Block": ("Block", "#8fb8e8", "#6d97cc"),
    "PrintTensor": ("Print tensor", "#f2b797", "#dc996f"),
    "ErrorProgram": ("Error", "#b3261e", "#ff8a80"),
}
_OF_KINDS = STEP_COLOURS | PROGRAM_COLOURS | WRITTEN_COLOURS

# Channels of a host trace take these in order.
SERIES = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#44aa99", "#ddaa77",
    "#999933", "#882255", "#88aadd", "#cc6677", "#77aa77", "#aa99cc", "#bbbbbb", "#6655bb",
    "#ddcc77", "#3377bb", "#cc99bb", "#997700", "#994455", "#117755", "#aaaa00", "#ffaabb",
    "#7788aa", "#555555",
)  # fmt: skip

_CATEGORY_ORDER = (
    "variable", "vertexCode", "internalExchangeCode", "constant", "message", "vertexInstanceState",
    "controlCode", "vertexFieldData", "rearrangement", "stack", "hostExchangeCode", "outputEdge",
    "copyDescriptor", "multiple", "overlapped", "instrumentationResults", "controlId",
    "hostMessage", "controlTable", "globalExchangeCode", "globalMessage", "sharedCodeStorage",
    "sharedDataStorage", "vectorListDescriptor", "hostExchangePacketHeader",
    "globalExchangePacketHeader",
)  # fmt: skip


def token(name: str, theme: Theme) -> str:
    """Return a colour of a theme."""
    return TOKENS[name][THEMES.index(theme)]


def step_colour(kind: str, theme: Theme) -> str:
    """Return the colour of a type of step or program; grey for a type that is not known."""
    entry = _OF_KINDS.get(kind)
    return entry[1 + THEMES.index(theme)] if entry else token("quiet", theme)


def step_words(kind: str) -> str:
    """Return the words for a type of step or program; the type itself when it is not known."""
    entry = _OF_KINDS.get(kind)
    return entry[0] if entry else kind


def category_colour(category: str) -> str:
    """Return the colour of a category of memory, the same in every report."""
    has_colour = category in _CATEGORY_ORDER
    return SERIES[_CATEGORY_ORDER.index(category) if has_colour else -1]


def colours(theme: Theme) -> dict[str, str]:
    """Return every colour of a theme by the name that style sheet and timelines have for it."""
    by_name = {name: token(name, theme) for name in TOKENS}
    by_name |= {f"step-{kind}": step_colour(kind, theme) for kind in _OF_KINDS}
    return by_name | {f"series-{number}": colour for number, colour in enumerate(SERIES)}


def css() -> str:
    """Write both themes as custom properties of the style sheet."""
    blocks = []
    for theme in THEMES:
        lines = "".join(f"--{name}:{colour};" for name, colour in colours(theme).items())
        blocks.append(f':root[data-mantine-color-scheme="{theme}"]{{color-scheme:{theme};{lines}}}')
    return f":root{{--font:{FONT};}}" + "".join(blocks)


def plot_layout(theme: Theme) -> dict[str, Any]:
    """Return what every plot shares: type, colours, margins, no mode bar logo."""
    axis = {
        "gridcolor": token("grid", theme),
        "linecolor": token("line", theme),
        "zeroline": False,
        "showline": True,
        "ticks": "outside",
        "tickcolor": token("line", theme),
        "ticklen": 4,
        "title": {"font": {"size": 12, "color": token("quiet", theme)}, "standoff": 10},
        "automargin": True,
    }
    return {
        "font": {"family": FONT, "size": 12, "color": token("text", theme)},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 8, "r": 12, "t": 30, "b": 8},
        "xaxis": axis,
        "yaxis": axis | {"rangemode": "tozero"},
        "hovermode": "x unified",
        "hoverdistance": -1,  # of four tiles each is wider than any distance from its middle
        "hoverlabel": {
            "bgcolor": token("surface", theme),
            "bordercolor": token("line", theme),
            "font": {"color": token("text", theme), "family": FONT, "size": 12},
        },
        "legend": {
            "orientation": "h",
            "xanchor": "left",
            "x": 0,
            "yref": "container",
            "yanchor": "bottom",
            "y": 0.01,
            "maxheight": 0.3,  # of the figure: the plot keeps its place, entries are scrolled to
        },
        "modebar": {
            "bgcolor": "rgba(0,0,0,0)",
            "color": token("quiet", theme),
            "activecolor": token("accent", theme),
        },
    }
