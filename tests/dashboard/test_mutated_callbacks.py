"""What a mutated page sends is refused in one line, and nothing of it is in the log."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from dashboard.app import create_app
from tests.builders import write_report

JUNK = (
    None, 5, -1, 1.5, True, "x", "", [], {}, [[]], ["x"], "9" * 400, {"path": 5, "search": 5},
    {"path": "/memory", "search": "?tile=1", "theme": 5}, {"search": [], "path": None},
)  # fmt: skip


def part(declared: dict[str, Any], value: object) -> dict[str, Any]:
    return {"id": declared["id"], "property": declared["property"], "value": value}


def mutated(output: str, callback: dict[str, Any], numbers: random.Random) -> dict[str, Any]:
    """Return the body of a request for a callback, with junk for values and often for more."""
    names = output.strip(".").split("...")
    outputs = [dict(zip(("id", "property"), name.rsplit(".", 1), strict=False)) for name in names]
    body: dict[str, Any] = {
        "output": output,
        "outputs": outputs if output.startswith("..") else outputs[0],
        "changedPropIds": numbers.choice(([], ["x.y"], 5, None, [5], ["place.data"])),
    }
    for key in ("inputs", "state"):
        body[key] = [part(each, numbers.choice(JUNK)) for each in callback[key]]
    if numbers.random() < 0.3:
        body[numbers.choice(list(body))] = numbers.choice(JUNK)
    if numbers.random() < 0.2:
        del body[numbers.choice(list(body))]
    return body


@pytest.mark.parametrize("seed", range(3))
def test_a_mutated_callback_fails_nothing(
    tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    app, numbers = create_app([write_report(tmp_path / "small")]), random.Random(seed)
    client = app.server.test_client()
    client.get("/_dash-layout")
    for output, callback in app.callback_map.items():
        if "start-demo" in output:  # its click runs a program
            continue
        body = mutated(output, callback, numbers)
        answer = client.post("/_dash-update-component", json=body)
        assert answer.status_code in (200, 204, 400), body
        assert answer.status_code != 400 or answer.text.count("\n") == 1
        assert caplog.text == "", body


def test_a_token_in_a_link_never_leads_to_another_host(tmp_path: Path) -> None:
    app = create_app([write_report(tmp_path / "small")], token="secret")
    client = app.server.test_client()
    for path in ("/%09/evil.example", "/%5C/evil.example", "//evil.example", "/%0D/evil.example"):
        answer = client.get(f"{path}?token=secret&tile=3", base_url="http://127.0.0.1:8050")
        place = answer.headers["Location"]
        assert place.startswith("/") and place.endswith("?tile=3")
        assert place[1:2] not in ("/", "\\", "\t", "\r"), place


def test_answers_that_are_made_are_not_stored(tmp_path: Path) -> None:
    client = create_app([write_report(tmp_path / "small")]).server.test_client()
    for path in ("/", "/memory", "/_dash-layout", "/download/memory-total.csv", "/none"):
        assert client.get(path).headers["Cache-Control"] == "no-store", path


@pytest.mark.parametrize("junk", JUNK)
def test_a_mutated_request_for_rows_or_what_was_opened_is_refused(
    tmp_path: Path, junk: object, caplog: pytest.LogCaptureFixture
) -> None:
    client = create_app([write_report(tmp_path / "small")]).server.test_client()
    rows = "/rows/memory-rows"
    asked = [
        {"search": "", "startRow": junk}, {"endRow": junk}, {"search": junk}, {"sortModel": junk},
        {"sortModel": [junk]}, {"sortModel": [{"colId": junk}]},
    ]  # fmt: skip
    answers = [client.post(rows, json=each) for each in asked]
    recent = {"id": "recent", "property": "data", "value": junk}
    for output in ("start-recent.children", "start-recent.x"):
        body = {
            "output": "start-recent.children", "inputs": [recent], "state": [],
            "outputs": dict(zip(("id", "property"), output.split("."), strict=True)),
        }  # fmt: skip
        answers.append(client.post("/_dash-update-component", json=body))
    assert {answer.status_code for answer in answers} <= {200, 400}
    assert answers[-1].text == "This is no request of a page.\n"
    assert caplog.text == ""
