"""What an example says about itself, in the `app.json` of its report directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def describe_application(directory: Path, facts: Mapping[str, object]) -> None:
    """Write facts about the program, with its name as `application`."""
    text = json.dumps(facts, indent=2)
    (directory / "app.json").write_text(f"{text}\n", encoding="utf-8")
