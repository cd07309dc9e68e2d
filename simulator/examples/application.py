"""What an example says about itself, in the `app.json` of its report directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pva.formats import report_directory
from simulator.profile.write import APP, write_facts


def describe_application(directory: Path, facts: Mapping[str, object]) -> None:
    """Write facts about the program, with its name as `application`."""
    claim = report_directory.claim(directory, [APP])
    try:
        write_facts(claim, APP, facts)
    finally:
        claim.release()
