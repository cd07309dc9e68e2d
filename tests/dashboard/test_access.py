"""What the server refuses, and what it lets a page load."""

from __future__ import annotations

import http.client
import queue
import re
import socket
import threading
from contextlib import closing, suppress
from html import escape
from pathlib import Path
from typing import Any

import pytest

from dashboard import server
from dashboard.app import create_app
from dashboard.requests.access import is_loopback, is_served
from tests.builders import write_report

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a client of the server, without a browser."""
    report = write_report(tmp_path_factory.mktemp("access") / "small")
    return create_app([report]).server.test_client()


def test_page_may_load_from_its_own_host_only(client: Any) -> None:
    answer = client.get("/", base_url="http://127.0.0.1:8050")
    policy = dict(
        part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; ")
    )
    assert policy["default-src"] == "'self'"
    assert re.fullmatch(r"'self'( 'sha256-[A-Za-z0-9+/=]+')+", policy["script-src"])
    assert policy["style-src"] == "'self' 'unsafe-inline'"
    assert policy["img-src"] == "'self' data: blob:"
    assert policy["frame-ancestors"] == "'none'"
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


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_request_from_another_site_or_port_is_refused(client: Any, site: str) -> None:
    answer = client.post("/_dash-update-component", json={}, headers={"Sec-Fetch-Site": site})
    assert answer.status_code == 403


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a server that other machines may ask."""
    report = write_report(tmp_path_factory.mktemp("far") / "small")
    return create_app([report], host="machine.example", token="secret").server


HOST = {"Host": "machine.example:8050"}


@pytest.mark.parametrize(
    "link",
    ["/", "/memory", "/timeline/device", "/download/memory-total.csv", "/_dash-layout",
     "/?token=wrong", "/assets/parts.css"],
)  # fmt: skip
def test_other_machine_without_the_token_is_refused(far: Any, link: str) -> None:
    answer = far.test_client().get(link, headers=HOST)
    assert answer.status_code == 401
    assert "token" in answer.text


def test_token_in_the_link_lets_in_and_leaves_the_address(far: Any) -> None:
    client = far.test_client()
    first = client.get("/memory?tile=3&token=secret", base_url="http://machine.example:8050")
    assert (first.status_code, first.headers["Location"]) == (302, "/memory?tile=3")
    cookie = first.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.get("/memory", base_url="http://machine.example:8050").status_code == 200


def test_token_in_the_link_leads_to_no_other_site(far: Any) -> None:
    answer = far.test_client().get("//evil.example/?token=secret", headers=HOST)
    assert not answer.headers.get("Location", "/").startswith(("//", "http"))


def test_other_machine_under_another_name_is_refused(far: Any) -> None:
    for host in ("evil.example", "127.0.0.1", "machine.example.evil.example"):
        answer = far.test_client().get("/?token=secret", headers={"Host": host})
        assert answer.status_code == 403


def test_other_host_without_a_token_is_not_served(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="0.0.0.0: serving other machines needs a token"):
        create_app([tmp_path], host="0.0.0.0")


@pytest.mark.parametrize(
    ("named", "host", "served"),
    [
        ("127.0.0.1:1", "127.0.0.1", True),
        ("[::1]:8050", "127.0.0.1", True),
        ("10.0.0.5", "127.0.0.1", False),
        ("10.0.0.5:8050", "0.0.0.0", True),
        ("evil.example", "0.0.0.0", False),
        ("127.0.0.1", "machine.example", False),
        ("MACHINE.example.", "machine.example", True),
        ("127.0.0.1@evil.example", "127.0.0.1", False),
        ("evil.example#127.0.0.1", "127.0.0.1", False),
        ("", "127.0.0.1", False),
    ],
)
def test_host_named_must_be_the_one_served(named: str, host: str, served: bool) -> None:
    assert is_served(named, host) is served


def test_server_listens_on_this_machine_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: dict[str, Any] = {}
    monkeypatch.setattr(server.waitress, "create_server", lambda _, **k: bound.update(k) or Idle())
    told: list[str] = []
    server.serve([], port=0, announce=told.append)
    assert bound["sockets"][0].getsockname()[0] == "127.0.0.1"
    assert "token" not in told[0]
    bound["sockets"][0].close()


def test_connections_that_send_nothing_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    create, made = server.waitress.create_server, queue.Queue[Any]()

    def noted(*given: Any, **settings: Any) -> Any:
        made.put(found := create(*given, **settings))
        return found

    monkeypatch.setattr(server.waitress, "create_server", noted)

    def served() -> None:
        with suppress(OSError, ValueError):  # its sockets are closed while it waits for them
            server.serve([], port=0)

    threading.Thread(target=served, daemon=True).start()
    running = made.get(timeout=60)
    place = ("127.0.0.1", running.effective_port)
    idle = [socket.create_connection(place, timeout=5) for _ in range(120)]
    with closing(http.client.HTTPConnection(*place, timeout=10)) as asked:
        asked.request("GET", "/vendor/nothing")
        assert asked.getresponse().status == 404
    for each in idle:
        each.close()
    running.close()


def test_link_of_another_host_has_a_new_token_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.waitress, "create_server", lambda _, **k: Idle(k["sockets"]))
    told: list[str] = []
    for _ in range(2):
        server.serve([], host="0.0.0.0", port=0, announce=told.append)
    tokens = [link.partition("?token=")[2] for link in told]
    assert all(len(token) >= 32 for token in tokens)
    assert tokens[0] != tokens[1]


class Idle:
    """Stand in for the server of waitress: it ends at once."""

    def __init__(self, sockets: Any = ()) -> None:
        self.sockets = sockets

    def run(self) -> None:
        """Serve nothing."""

    def close(self) -> None:
        """Close what was bound."""
        for each in self.sockets:
            each.close()


@pytest.mark.parametrize("up", ["..", "%2e%2e", "%252e%252e", "..%2f..", "..%5c..", "..\\.."])
@pytest.mark.parametrize("start", ["/assets", "/timeline", "/download", ""])
def test_no_file_outside_the_assets_is_served(client: Any, start: str, up: str) -> None:
    for name in ("app.py", "pyproject.toml", "etc/passwd"):
        answer = client.get(f"{start}/{up}/{name}").text
        assert not any(words in answer for words in ("create_app", "[build-system]", "root:x"))


@pytest.mark.parametrize("report", ["..", "%2e%2e", "/etc", "small%2f..", "..%2f..%2fetc%2fpasswd"])
@pytest.mark.parametrize("link", ["/timeline/device", "/download/memory-total.csv"])
def test_report_is_named_by_its_key_never_by_a_path(client: Any, link: str, report: str) -> None:
    answer = client.get(f"{link}?report={report}")
    assert answer.status_code == 404
    assert "not there; known: small" in answer.text


def test_rows_of_a_tab_that_has_none_are_none(client: Any) -> None:
    answer = client.post("/rows/memory-rows", json={"search": "?tab=details&tile=0"})
    assert "failed" not in answer.json["note"]


def test_failure_is_answered_without_a_stack_trace(client: Any) -> None:
    for body in ("{", "[]", '{"output":"x.y","inputs":[]}', '{"output":{}}'):
        answer = client.post("/_dash-update-component", data=body, content_type="application/json")
        assert "Traceback" not in answer.text
        assert ".py" not in answer.text
        assert len(answer.text) < 200


BODIES = (
    "", "{", "[]", "1", "[" * 100_000, '{"output":"page-above.children"}', '{"output":["x"]}',
    '{"output":"x.y","inputs":[{}]}', '{"output":"start-recent.children","inputs":[]}',
    '{"output":"start-recent.children","inputs":[5]}',
    '{"output":"start-recent.children","inputs":[{}],"state":1}',
)  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_body_that_no_page_sends_is_refused_and_not_in_the_log(
    client: Any, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client.post("/_dash-update-component", data=body, content_type="application/json")
    assert (answer.status_code, answer.text) == (400, "This is no request of a page.\n")
    assert caplog.text == ""


@pytest.mark.parametrize("path", ["os/path.py", "dash/dash.py", "dash/%2e%2e/flask/app.py"])
def test_file_that_dash_does_not_have_is_not_found(client: Any, path: str) -> None:
    assert client.get(f"/_dash-component-suites/{path}").status_code == 404


def test_servers_of_two_tokens_let_one_browser_in_to_both(tmp_path: Path) -> None:
    browser: dict[str, str] = {}  # its cookies, which do not tell ports
    for token in ("first", "second"):
        site = create_app([tmp_path], host="machine.example", token=token).server.test_client()
        name, _, rest = (
            site.get(f"/?token={token}", headers=HOST).headers["Set-Cookie"].partition("=")
        )
        browser[name] = rest.partition(";")[0]
    cookies = "; ".join(f"{name}={value}" for name, value in browser.items())
    for token in ("first", "second"):
        server = create_app([tmp_path], host="machine.example", token=token).server
        site = server.test_client(use_cookies=False)
        assert site.get("/", headers=HOST | {"Cookie": cookies}).status_code == 200


def test_no_debug_mode_and_no_pickle() -> None:
    app = create_app([])
    assert not app.server.debug
    assert not app._dev_tools.ui
    sources = Path(server.__file__).parent.rglob("*.py")
    assert not any("pickle" in path.read_text(encoding="utf-8") for path in sources)


def test_filter_is_data(client: Any) -> None:
    link = "/download/memory-vertices.csv?tab=vertices&filter=__import__('os').system('true')~x"
    assert client.get(link).status_code == 404
    assert "no such column" in client.get(link).text


def test_loopback_is_told_from_the_rest() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]")))
    assert not any(map(is_loopback, ("0.0.0.0", "10.0.0.1", "example.org", "")))


@pytest.mark.parametrize(
    ("path", "status", "heading"),
    [
        ("/download/none.csv?report=<b>", 404, "Not Found"),
        ("/download/start-reports.csv?range=9-1", 404, "Not Found"),
        ("/timeline/device?report=deleted", 404, "Not Found"),
        ("/assets/none.css", 404, "Not Found"),
    ],
)
def test_browser_that_asks_for_a_page_gets_a_heading_and_a_way_on(
    client: Any, path: str, status: int, heading: str
) -> None:
    page, line = (client.get(path, headers={"Accept": accepted}) for accepted in (BROWSER, "*/*"))
    assert page.status_code == line.status_code == status
    assert page.mimetype == "text/html"
    assert f"<h1>{heading}</h1>" in page.text
    assert '<a href="/">' in page.text
    assert f"<p>{escape(line.text.strip())}</p>" in page.text
    assert line.mimetype == "text/plain"


def test_page_of_a_refusal_leads_nowhere_where_no_page_is_open(client: Any) -> None:
    refused = client.get("/", headers={"Accept": BROWSER, "Host": "evil.example"})
    assert refused.status_code == 403
    assert "<h1>Forbidden</h1>" in refused.text
    assert "href" not in refused.text


def test_a_request_of_more_than_four_million_bytes_is_refused(client: Any) -> None:
    for size, status in ((4_000_001, 413), (4_000_000, 400)):  # the second is no call of a page
        body = b"[" + b" " * (size - 2) + b"]"
        answer = client.post("/_dash-update-component", data=body, content_type="application/json")
        assert (answer.status_code, answer.text.count("\n")) == (status, 1)
