"""Each rule of access on a bare server of two pages, of which one fails."""

from __future__ import annotations

import json
import logging
import socket
from http import HTTPStatus
from typing import Any

import pytest
from dash.exceptions import CallbackException, DependencyException, PreventUpdate
from flask import Flask, Response, request
from werkzeug.exceptions import NotFound

from dashboard.requests.access import is_loopback, is_served, only_callbacks, protect

HERE = "http://127.0.0.1:8050"
HTML = {"Accept": "text/html,*/*;q=0.8"}
CALLBACKS = "/_dash-update-component"
SERVED = "This dashboard answers to 127.0.0.1 and localhost only.\n"
FAR = "This dashboard answers to machine.example only.\n"
OTHER_SITE = "This request comes from another site.\n"
NO_REQUEST = "This is no request of a page.\n"
NO_TOKEN = "Open the address that `tilescope serve` printed, with its token.\n"
FAILED = "the dashboard failed here; its log has the details\n"


FAULTS = {
    "crash": ZeroDivisionError, "none": NotFound, "file": DependencyException,
    "outputs": CallbackException, "other": PreventUpdate,
}  # fmt: skip


def site(host: str = "127.0.0.1", **access: str) -> Flask:
    """Make a server of a page and of failing ones."""
    server = Flask("bare")
    protect(server, ["'sha256-a'", "'sha256-b'"], host=host, **access)

    @server.route("/", methods=["GET", "POST", "HEAD"])
    def page() -> str:
        return "page"

    @server.route("/size", methods=["POST"])
    def size() -> str:
        return f"{len(request.get_data())}"

    @server.route("/lasting")
    def lasting() -> Response:
        return Response("file", headers={"Cache-Control": "max-age=9"})

    @server.route("/answer/<int:status>")
    def answer(status: int) -> Response:
        return Response("<b>line</b>\n", status, mimetype="text/plain")

    @server.route("/fail/<name>")
    def fail(name: str) -> str:
        raise FAULTS[name]

    return server


def test_every_answer_has_the_headers_and_files_keep_their_own() -> None:
    client = site().test_client()
    for path, cache in (("/", "no-store"), ("/lasting", "max-age=9"), ("/none", "no-store")):
        headers = client.get(path, base_url=HERE).headers
        assert headers.getlist("Cache-Control") == [cache]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        policy = headers["Content-Security-Policy"].split("; ")
        assert policy[1] == "script-src 'self' 'sha256-a' 'sha256-b'"


def test_another_name_or_site_is_refused_with_a_line() -> None:
    for server, line in ((site(), SERVED), (site("machine.example", token="t"), FAR)):
        answer = server.test_client().get("/?token=t", base_url="http://evil.example")
        assert (answer.status_code, answer.text) == (403, line)
    client = site().test_client()
    for origin, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200)):
        answer = client.post("/", base_url=HERE, headers={"Sec-Fetch-Site": origin})
        assert (answer.status_code, answer.text) == (
            status,
            OTHER_SITE if status == 403 else "page",
        )
        read = client.get("/", base_url=HERE, headers={"Sec-Fetch-Site": origin})
        assert read.status_code == 200
    assert client.post("/", base_url=HERE).status_code == 200


def test_a_request_without_a_host_is_refused() -> None:
    for host in ("127.0.0.1", "machine.example", "0.0.0.0", "XXXX"):
        client = site(host, token="t").test_client()
        assert client.get("/?token=t", headers={"Host": ""}).status_code == 403


def test_access_is_refused_before_all_else() -> None:
    server = Flask("bare")
    asked: list[str] = []
    server.before_request(lambda: asked.append(request.path))
    protect(server, [], host="127.0.0.1")
    server.test_client().get("/", base_url="http://evil.example")
    assert asked == []


def test_four_million_bytes_are_the_most_of_a_request() -> None:
    client = site().test_client()
    for size, status in ((4_000_000, 200), (4_000_001, 413)):
        assert client.post("/size", base_url=HERE, data=b"x" * size).status_code == status


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 500])
def test_a_line_is_a_page_for_a_browser_where_it_refuses(status: int) -> None:
    client = site().test_client()
    page = client.get(f"/answer/{status}", base_url=HERE, headers=HTML)
    assert page.mimetype == ("text/html" if status >= 400 else "text/plain")
    if status >= 400:
        way = "" if status in (401, 403) else '<p><a href="/">All reports and traces</a></p>'
        assert f"<p>&lt;b&gt;line&lt;/b&gt;</p>{way}</main>" in page.text
        assert f"<h1>{HTTPStatus(status).phrase}</h1>" in page.text
    line = client.get(f"/answer/{status}", base_url=HERE)
    assert (line.mimetype, line.text) == ("text/plain", "<b>line</b>\n")


@pytest.mark.parametrize(
    ("fault", "status", "line"),
    [("crash", 500, FAILED), ("none", 404, "404 Not Found\n"),
     ("file", 404, "404 Not Found\n"), ("outputs", 400, NO_REQUEST), ("other", 500, FAILED)],
)  # fmt: skip
def test_a_failure_is_a_line_and_the_log_has_what_nobody_expected(
    fault: str, status: int, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = site().test_client().get(f"/fail/{fault}", base_url=HERE)
    assert (answer.status_code, answer.text) == (status, line)
    assert answer.mimetype == "text/plain"
    logged = [(entry.name, entry.levelno, entry.getMessage()) for entry in caplog.records]
    expected = [("tilescope", logging.ERROR, "the dashboard failed")] if status == 500 else []
    assert logged == (expected if line == FAILED else [])
    assert all(entry.exc_info and entry.exc_info[1] for entry in caplog.records)


def test_the_token_of_a_link_becomes_a_cookie_and_the_rest_of_the_link_stays() -> None:
    server = site("machine.example", token="secret")
    for link, place in (
        ("/?token=secret", "/"), ("/X/a?tile=1&tile=2&token=secret", "/X/a?tile=1&tile=2"),
    ):  # fmt: skip
        answer = server.test_client().get(link, base_url="http://machine.example")
        assert (answer.status_code, answer.headers["Location"]) == (302, place)
        # sha256 of "secret" begins with 2bb80d53
        cookie = "tilescope-2bb80d53=secret; HttpOnly; Path=/; SameSite=Strict"
        assert answer.headers["Set-Cookie"] == cookie
    for token in ("", "XXXX"):  # no token is none, whatever the server's is
        other = site("machine.example", token=token or "t").test_client()
        refused = other.get("/", base_url="http://machine.example")
        assert (refused.status_code, refused.text) == (401, NO_TOKEN)
    posted = server.test_client().post("/?token=secret", base_url="http://machine.example")
    assert posted.status_code == 401


def test_the_cookie_of_the_token_lets_in_and_no_other_does() -> None:
    client = site("machine.example", token="secret").test_client(use_cookies=False)
    for cookie, status in (
        ("tilescope-2bb80d53=secret", 200), ("tilescope-2bb80d53=other", 401), ("None=secret", 401),
        ("tilescope-2bb80d5=secret", 401),
    ):  # fmt: skip
        headers = {"Cookie": cookie}
        answer = client.get("/", base_url="http://machine.example", headers=headers)
        assert answer.status_code == status


@pytest.mark.parametrize("host", ["0.0.0.0", "machine.example", "10.0.0.1"])
def test_another_host_without_a_token_is_an_error_of_its_name(host: str) -> None:
    with pytest.raises(ValueError, match=f"^{host}: serving other machines needs a token$"):
        site(host)
    assert site("[::1]") and site("localhost")


def test_on_this_machine_no_token_is_asked_for() -> None:
    assert site().test_client().get("/", base_url=HERE).text == "page"
    assert site(token="t").test_client().get("/", base_url=HERE).status_code == 401


def test_other_machines_are_served_under_the_names_of_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Short")
    monkeypatch.setattr(socket, "getfqdn", lambda: "Long.example")
    names = ("short", "SHORT:80", "long.example.", "localhost", "10.0.0.5", "[::1]")
    assert all(is_served(name, "0.0.0.0") and is_served(name, "::") for name in names)
    assert not any(is_served(name, "0.0.0.0") for name in ("other", "shortX", "example"))
    assert is_served("[fe80::1]:80", "[fe80::1]") and is_served("[fe80::1]", "FE80::1")
    assert not is_served("machine.exampleX", "machine.example")
    assert not is_served("machine", "XmachineX") and is_served("[::2]", "[::2]")
    assert not is_loopback("X::1X") and not is_served("X127.0.0.1", "127.0.0.1")


ONE, TWO, ALL = "a.value", "..a.value...b.data..", '{"kind":["ALL"]}.value'
DECLARED = {
    "callback": print, "inputs": [{"id": "i", "property": "n_clicks"}],
    "state": [{"id": "s", "property": "search"}],
}  # fmt: skip
STATELESS = "stateless.value"
CALLS: dict[str, Any] = {
    ONE: DECLARED, TWO: DECLARED, ALL: DECLARED, "client.x": {"inputs": []},
    STATELESS: DECLARED | {"state": []},
}  # fmt: skip


def call(**changes: Any) -> dict[str, Any]:
    """Return what a page sends of the callback of one output, with changes; None leaves out."""
    parts = {
        "output": ONE, "outputs": part("value"), "changedPropIds": ["i.n_clicks"],
        "inputs": [part("n_clicks")], "state": [part("search")],
    }  # fmt: skip
    return {name: value for name, value in (parts | changes).items() if value is not None}


def part(name: object, at: object = "a") -> dict[str, object]:
    return {"id": at, "property": name}


BOTH = [part("value"), part("data", "b")]
EACH = [part("value", {"kind": 1}), part("value", {"kind": 2})]
RIGHT = [
    call(), call(changedPropIds=None), call(changedPropIds=[]),
    call(output=TWO, outputs=BOTH), call(output=ALL, outputs=EACH),
    call(inputs=[[part("n_clicks"), part("n_clicks", {"kind": 2})]]),
    call(inputs=[part("n_clicks", {"kind": 1})]), call(output=STATELESS, state=None),
]  # fmt: skip
WRONG = [
    call(output="none.x"), call(output="client.x"), call(output=5), call(output=None), [], 7, None,
    call(changedPropIds="i.n_clicks"), call(changedPropIds=[5]), call(changedPropIds={"a": 1}),
    call(outputs=None), call(outputs=EACH), call(outputs=[part("value")]), call(outputs="a"),
    call(outputs={"property": "value"}), call(outputs={"id": "a"}), call(outputs=part(5)),
    call(outputs=part("value", 5)),
    call(output=TWO, outputs=BOTH[:1]), call(output=TWO, outputs=[*BOTH, part("x")]),
    call(output=TWO, outputs=part("value")), call(output=TWO, outputs=[BOTH, part("x")]),
    call(output=TWO, outputs=[part("value"), 5]), call(output=TWO),
    call(output=ALL, outputs=[5]), call(output=ALL, outputs=[[part("value")]]),
    call(output=ALL, outputs=[part("value"), {"id": 5}]),
    call(inputs=[]), call(inputs=None), call(inputs=5), call(inputs=part("n_clicks")),
    call(inputs=[part("other")]), call(inputs=[part("n_clicks")] * 2), call(inputs=[5]),
    call(inputs=[[part("n_clicks"), part("other")]]), call(inputs=[[5]]),
    call(inputs=[[[part("n_clicks")]]]),
    call(state=[]), call(state=None), call(state=[part("other")]),
    call(state={"a": part("search")}),
]  # fmt: skip


@pytest.fixture
def calls() -> Any:
    """Return a client of a server of callbacks, and of another page."""
    server = site()
    only_callbacks(server, CALLS)
    for path in (CALLBACKS, "/other"):
        server.add_url_rule(path, path, lambda: "called", methods=["GET", "POST"])
    return server.test_client()


@pytest.mark.parametrize("body", RIGHT, ids=range(len(RIGHT)))
def test_a_call_as_a_page_makes_it_is_answered(calls: Any, body: object) -> None:
    assert calls.post(CALLBACKS, base_url=HERE, json=body).text == "called"


@pytest.mark.parametrize("body", WRONG, ids=range(len(WRONG)))
def test_a_call_as_no_page_makes_it_is_refused(calls: Any, body: object) -> None:
    answer = calls.post(CALLBACKS, base_url=HERE, json=body)
    assert (answer.status_code, answer.text) == (400, NO_REQUEST)


def test_calls_are_posts_to_one_path(calls: Any) -> None:
    assert calls.post("/other", base_url=HERE, json=5).text == "called"
    assert calls.get(CALLBACKS, base_url=HERE).text == "called"
    nested = json.dumps(call())[:-1] + ', "x": ' + "[" * 100_000 + "]" * 100_000 + "}"
    for body in ("{", "", nested):
        answer = calls.post(CALLBACKS, base_url=HERE, data=body, content_type="application/json")
        assert (answer.status_code, answer.text) == (400, NO_REQUEST)
