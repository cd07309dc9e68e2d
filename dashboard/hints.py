"""What each control of a page does: on hover, and in the documentation.

By the path of the page and the key of the address that the control sets: its name and the words.
"""

from __future__ import annotations

_IPU = ("IPU", "Shows one IPU instead of all")
_REPORTS = ("Filter reports", "Shows only reports whose name contains this text")

HINTS: dict[str, dict[str, tuple[str, str]]] = {
    "/": {
        "find": _REPORTS,
        "order": ("Order", "Sorts the runs: the newest, the fullest or the longest first, or by "
                  "name"),
        "kind": ("Kind of run", "Shows only runs that fit, that do not fit, or host traces"),
        "before": ("Before", "The first of the two reports that are compared"),
        "after": ("After", "The second of the two reports that are compared"),
    },
    "/summary": {
        "find": ("Filter", "Shows only options or entries that contain this text"),
    },
    "/insights": {
        "of": ("Where", "Shows all tiles, one IPU, or one of the fullest tiles"),
        "filter": ("Filter by name", "Shows only rows whose name contains this text"),
    },
    "/instances": {
        "in": ("Colour", "Colours the map by the part of the time in runs, callbacks or "
               "collectives"),
        "pace": ("Draw", "Draws how late each instance is, how long its runs are, or how far one "
                 "is from the next"),
    },
    "/serving": {
        "model": ("Model", "Shows the requests of one model"),
        "delay": ("Delays", "Replays these delays of the batcher, as 0,500us,5ms"),
        "preferred": ("Preferred sizes", "Replays these preferred sizes, as none,8,8+32"),
        "instances": ("Instances", "Replays these numbers of instances, as 1,2"),
    },
    "/explore": {
        "x": ("Across", "Puts a figure or a lever on the horizontal axis"),
        "y": ("Up", "Puts a figure or a lever on the vertical axis"),
        "colour": ("Colour", "Colours the points by the value of a lever"),
        "filter": ("Filter configurations", "Shows only points whose levers contain this text, in "
                   "the plot, the table and what is saved"),
    },
    "/memory": {
        "graph": ("Kind of graph", "Draws all memory of each tile, chosen variables over them, or "
                  "the tiles as they lie on the chip"),
        "breakdown": ("Breakdown", "Splits what a tile has by region, category or liveness"),
        "per": ("Per tile or IPU", "Draws a value a tile, or the sum of each IPU"),
        "order": ("Order of tiles", "Puts tiles in the order of their numbers, or as they lie on "
                  "the chip"),
        "gaps": ("Gaps", "Counts what lies unused between variables, as the tile needs it too"),
        "limit": ("Maximum", "Draws the memory that a tile has as a line, or scales the map to it"),
        "category": ("Category", "Colours the map by all memory, or by one category of data"),
        "scale": ("Colours", "Chooses the colours of the map"),
        "tile": ("Tiles", "Chooses tiles by number, as in 3, 17, 100-120: a column each below"),
        "filter": ("Filter by name", "Shows only rows whose name contains this text"),
        "lies": ("Table or addresses", "Lists variables by size, or lays one tile out by address"),
    },
    "/liveness": {
        "ipu": _IPU,
        "graph": ("Kind of graph", "Draws the bytes of all tiles at each step as a curve, or the "
                  "bytes of each tile at each step as a heat map"),
        "tile": ("One tile", "Shows one tile instead of all"),
        "show": ("What is drawn", "Draws all that is live, or leaves out what is always live"),
        "find": ("Filter steps", "Marks the program steps whose name contains this text"),
        "step": ("Steps", "Chooses program steps by number: several stand side by side below"),
        "filter": ("Filter variables", "Shows only rows whose name contains this text"),
    },
    "/programs": {
        "stage": ("Stage of the compilation", "Shows the programs as they were compiled, or as "
                  "they were written: as given to the engine, each with what it became"),
        "part": ("Part", "Shows one control program or function instead of all"),
        "level": ("Open levels", "Opens the tree down to a level; single lines are opened by hand"),
        "layer": ("Related", "Chooses the software layer by which steps belong to one operation: "
                  "those of the chosen step's are marked"),
        "syncs": ("Syncs", "Shows or hides the syncs"),
        "find": ("Search for steps", "Enter and Shift Enter go to the next and the previous step "
                 "whose name contains this text"),
    },
    "/operations": {
        "levels": ("Levels of the tree",
                   "Opens so many levels of modules; single modules are opened by hand"),
        "layer": ("Software layer", "Takes operations as Poplar's libraries, PopART, ONNX or your "
                  "own scopes name them"),
        "filter": ("Filter operations", "Shows only rows whose name contains this text"),
    },
    "/graph": {
        "ipu": _IPU,
        "tile": ("One tile", "Shows only what lies on this tile"),
        "filter": ("Filter by name", "Shows only rows whose name contains this text"),
    },
    "/execution": {
        "against": ("Compare with", "Shows the execution of another report below this one"),
        "show": ("Layers above the steps", "Flame shows the steps inside the layers of their "
                 "names, Flat the steps alone"),
        "path": ("Critical path", "Shows the steps that the runs are as long as, in a lane above "
                 "the IPUs"),
        "ipu": _IPU,
        "arrows": ("Arrows of waits", "Leads from an IPU that waits for another to the one that "
                   "arrives last, for the longest waits in view; those of the chosen sync always"),
        "bsp": ("Tiles", "Shows what each tile does in each step, below the steps"),
        "filter": ("Filter programs", "Shows only rows whose name contains this text"),
    },
    "/exchange": {
        "by": ("Rows and columns", "Draws groups of neighbouring tiles, or one cell for each pair "
               "of IPUs"),
        "filter": ("Filter exchanges", "Shows only rows whose name contains this text"),
    },
    "/flames": {
        "find": ("Search names", "Marks the frames whose name has these letters, and says what "
                 "they take together"),
    },
    "/compare": {
        "against": ("Compared with", "The second report; the first is that of the header"),
        "by": ("Rows", "What the rows of the table are"),
        "filter": ("Filter by name", "Shows only rows whose name contains this text"),
        "same": ("Rows that are the same", "Shows also what did not change"),
        "gaps": ("Gaps", "Counts what lies unused between variables, as the tile needs it too"),
        "show": ("How both are drawn", "In one plot, one above the other, or the change alone"),
    },
    "/trace": {
        "merged": ("Merge threads", "Lays the events of all threads on one lane"),
        "lines": ("Line graphs", "Draws series as lines, or as areas"),
        "align": ("Several files", "Puts traces where the wall clock of each says, or all at the "
                  "same begin"),
        "filter": ("Filter labels", "Shows only labels that contain this text"),
    },
    "/together": {
        "axis": ("Axis", "As on the device, where a run takes its cycles, or as simulated, where "
                 "it takes the time of the simulation"),
    },
    "/documentation": {
        "find": ("Search", "Enter searches, then goes to the next section found; Shift Enter to "
                 "the previous"),
    },
}  # fmt: skip


def hint(path: str, key: str) -> str:
    """Return what a control of a page does; empty for one that says so itself."""
    return HINTS.get(path, {}).get(key, ("", ""))[1]
