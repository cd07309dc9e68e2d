"""The image of what tiles do: made once for all of the execution, anew for each window."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.app import create_app
from dashboard.timeline import endpoint
from tests.builders import small_report, write_report

URL = "/timeline/device/tiles?columns=40&height=4"


@pytest.mark.parametrize(("window", "times"), [("", 1), ("&begin=0&end=100", 2)])
def test_the_image_of_all_is_made_once_that_of_a_window_each_time(
    window: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    answer = endpoint.tiles_answer
    monkeypatch.setattr(
        endpoint, "tiles_answer", lambda *asked: calls.append(asked) or answer(*asked)
    )
    client = create_app([write_report(tmp_path / "small", small_report())]).server.test_client()
    first, second = (client.get(URL + window).data for _ in range(2))
    assert len(calls) == times and first == second and first.startswith(b"TSB1")
    assert client.get(f"{URL}0&tiles=0-1{window}").data != first
