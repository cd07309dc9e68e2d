"""Print the peak of not-always-live memory in the steps of each layer's operations."""

import json
import re
import sys

import pva
from pva import OperationAnalysis

report = pva.openReport(sys.argv[1], sys.argv[2])
steps = report.compilation.livenessProgramSteps
operations = OperationAnalysis(report).operations
peaks = {}
for i in range(len(operations)):
    operation = operations[i]
    found = re.findall(r"Layer(\d+)/", operation.name)
    if len(set(found)) != 1 or len(operation.programs()) == 0:
        continue
    first, last = operation.firstStepIndex, operation.lastStepIndex
    peak = max(steps[s].notAlwaysLiveMemory.bytes for s in range(first, last + 1))
    peaks[found[0]] = max(peaks.get(found[0], 0), peak)
    context = operation.replacedDebugContext or [operation.debugContext]
    assert json.loads(context[0].layer)["layer"]
print(json.dumps(peaks))
