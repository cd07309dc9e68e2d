"""Print the cycles of each type of program on the first IPU, the unnamed types as other."""

import json
import sys

import pva


class CyclesVisitor(pva.ProgramVisitor):
    def __init__(self, cycles):
        self.cycles = cycles
        self.kind = None
        super().__init__()

    def visitOnTileExecute(self, onTileExecute):
        self.kind = "compute"

    def visitDoExchange(self, doExchange):
        self.kind = "exchange"

    def visitGlobalExchange(self, globalExchange):
        self.kind = "exchange"

    def visitStreamCopyBegin(self, streamCopy):
        self.kind = "host"

    def visitStreamCopyMid(self, streamCopy):
        self.kind = "host"

    def visitStreamCopyEnd(self, streamCopy):
        self.kind = "host"


totals = {"compute": 0, "exchange": 0, "host": 0, "other": 0}
report = pva.openReport(sys.argv[1])
balances = []
for run in report.execution.runs:
    for step in run.steps:
        visitor = CyclesVisitor(totals)
        step.program.accept(visitor)
        totals[visitor.kind or "other"] += step.ipus[0].cycles
        active = step.ipus[0].activeCycles
        is_sync = step.program.type in [pva.Program.Type.Sync, pva.Program.Type.SyncAns]
        if not is_sync and active.cyclesFrom.max != active.cyclesTo.max:
            balances.append(step.ipus[0].tileBalance)
totals["balance"] = f"{sum(balances) / len(balances):.4f}"
print(json.dumps(totals))
