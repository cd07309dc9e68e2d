"""Print for each tile the most that variables have at a step, and the code of leaf programs."""

import json
import sys
from collections import defaultdict

import numpy as np

import pva

report = pva.openReport(*sys.argv[1:])
num_steps = len(report.compilation.livenessProgramSteps)
num_tiles = report.compilation.target.tilesPerIpu
classes, by_tile = {}, [defaultdict(int) for _ in range(num_tiles)]
variables = report.compilation.loweredVariables.allBriefVars
if len(variables) == 0:
    sys.exit("Profile does not contain lowered variables")
for var in variables:
    cls = var.equivalenceClass
    if cls.id not in classes:
        live = classes.setdefault(cls.id, np.zeros(num_steps, dtype=bool))
        for interval in cls.steps:
            live[interval.start : interval.end] = 1
    by_tile[var.tileId][cls.id] += var.bytes
peaks = []
for sizes in by_tile:
    total = np.zeros(num_steps, dtype=np.uint64)
    for cls, size in sizes.items():
        total += classes[cls] * np.uint64(size)
    peaks.append(int(np.max(total)))

programs = {p for op in pva.OperationAnalysis(report).operations for p in op.programs()}
control, exchange = np.zeros(num_tiles, np.uint64), np.zeros(num_tiles, np.uint64)
vertices = defaultdict(lambda: np.zeros(num_tiles, np.uint64))
for program in programs:
    if len(program.children) == 0:
        control += np.array(program.controlCodeByTile, dtype=np.uint64)
    if program.type == pva.Program.Type.DoExchange:
        exchange += np.array(program.codeBytesByTile, dtype=np.uint64)
    if program.type == pva.Program.Type.OnTileExecute:
        for vertex in program.computeset.vertices:
            vertices[vertex.type.name] += np.array(vertex.countByTile, dtype=np.uint64)
print(
    json.dumps(
        {
            "peaks": peaks,
            "control": control.tolist(),
            "exchange": exchange.tolist(),
            "vertices": {name: counts.tolist() for name, counts in sorted(vertices.items())},
        }
    )
)
