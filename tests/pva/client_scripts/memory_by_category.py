"""Print the memory of all tiles by category, beside the target's and the largest tile's."""

import json
import sys

import numpy as np

from pva import openReport

report = openReport(str(sys.argv[1]))
target = report.compilation.target
names = [
    "constant",
    "controlCode",
    "vertexCode",
    "vertexInstanceState",
    "vertexFieldData",
    "copyDescriptor",
    "vectorListDescriptor",
    "internalExchangeCode",
    "hostExchangeCode",
    "globalExchangeCode",
    "stack",
    "variable",
    "message",
]
totals = {}
for name in names:
    sizes = [getattr(tile.memory.category, name).total for tile in report.compilation.tiles]
    totals[name] = int(np.array(sizes, dtype=np.uint64).sum())
used = []
for tile in report.compilation.tiles:
    try:
        used.append(tile.memory.used)
    except Exception:
        used.append(tile.memory.total.includingGaps)
totals["largest tile"] = max(used)
totals["share"] = f"{100 * sum(used) / target.totalMemory:.2f}%"
totals["vertices"] = sum(v.codeBytes for t in report.compilation.tiles for v in t.memory.vertices)
print(json.dumps(totals))
