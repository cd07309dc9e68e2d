"""The reports of a session: text, JSON, CBOR, and the one that pva reads."""

from __future__ import annotations

from typing import Any

from simulator.engine import Engine
from simulator.popart.sessions import report_texts
from simulator.popart.sessions.options import SessionOptions


class Reports:
    """The methods of a session that tell what it costs."""

    _options: SessionOptions
    _profiled: bool

    def _loaded(self, caller: str) -> Engine:
        raise NotImplementedError

    def getReport(self) -> Any:
        """Return the report of the session, as pva reads it.

        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference()
        >>> session.prepareDevice()
        >>> session.getReport().compilation.target.numTiles
        4
        """
        return self._loaded("getReport").getReport()

    def getSummaryReport(self, resetProfile: bool = False) -> str:
        """Return a summary of compilation and runs as text; `reportOptions` add to it.

        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference()
        >>> session.prepareDevice()
        >>> print(session.getSummaryReport())
        Target:
        ...
        Graph:
          Number of vertices:                1
        ...
        """
        engine = self._loaded("getSummaryReport")
        text = report_texts.summary(engine, self._options.reportOptions, profiled=self._profiled)
        if resetProfile:
            engine.resetExecutionProfile()
        return text

    def getGraphReport(self, useCbor: bool = False) -> str | bytes:
        """Return the profile of the compiled graph as JSON, or as CBOR.

        >>> import json
        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference()
        >>> session.prepareDevice()
        >>> profile = json.loads(session.getGraphReport())
        >>> profile["target"]["numTiles"]
        4
        """
        return report_texts.graph_report(self._loaded("getGraphReport"), cbor=useCbor)

    def getExecutionReport(self, useCbor: bool = False, resetProfile: bool = True) -> str | bytes:
        """Return the profile of what ran since the last such report, as JSON or as CBOR.

        >>> import json
        >>> import numpy as np
        >>> from simulator import popart
        >>> from simulator.popart import trial
        >>> session, x, y = trial.inference(engineOptions={"debug.instrumentCompute": "true"})
        >>> session.prepareDevice()
        >>> session.run(popart.PyStepIO({x: np.float32([-1.0, 2.0])}, session.initAnchorArrays()))
        >>> profile = json.loads(session.getExecutionReport())
        >>> len(profile["runs"])
        1
        """
        engine = self._loaded("getExecutionReport")
        report = report_texts.execution_report(engine, cbor=useCbor, profiled=self._profiled)
        if resetProfile:
            engine.resetExecutionProfile()
        return report
