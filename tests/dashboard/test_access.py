"""What the server refuses, and what it lets a page load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dashboard.access import is_loopback
from dashboard.app import create_app
from tests.builders import write_report


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Give a client of the server, without a browser."""
    report = write_report(tmp_path_factory.mktemp("access") / "small")
    return create_app([report]).server.test_client()


def test_page_may_load_from_its_own_host_only(client: Any) -> None:
    answer = client.get("/", base_url="http://127.0.0.1:8050")
    policy = dict(
        part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; ")
    )
    assert policy["default-src"] == "'self'"
    assert "unsafe" not in policy["script-src"]
    assert not any("http" in value or "*" in value for value in policy.values())
    assert "//" not in answer.text.replace("<!DOCTYPE html>", "")


@pytest.mark.parametrize("host", ["127.0.0.1:8050", "localhost:8050", "[::1]:8050"])
def test_this_machine_is_answered(client: Any, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8050", "127.0.0.1.evil.example"])
def test_foreign_name_for_this_machine_is_refused(client: Any, host: str) -> None:
    answer = client.get("/timeline/device", headers={"Host": host})
    assert answer.status_code == 403
    assert "127.0.0.1" in answer.text


def test_request_from_another_site_is_refused(client: Any) -> None:
    answer = client.post(
        "/_dash-update-component", json={}, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert answer.status_code == 403


def test_other_addresses_may_ask_when_the_user_serves_them(tmp_path: Path) -> None:
    report = write_report(tmp_path / "small")
    client = create_app([report], loopback_only=False).server.test_client()
    assert client.get("/", headers={"Host": "machine.example:8050"}).status_code == 200


def test_no_file_outside_the_assets_is_served(client: Any) -> None:
    for link in ("/assets/../app.py", "/assets/%2e%2e/app.py", "/timeline/../app.py"):
        assert b"create_app" not in client.get(link).data


def test_loopback_is_told_from_the_rest() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]")))
    assert not any(map(is_loopback, ("0.0.0.0", "10.0.0.1", "example.org", "")))
