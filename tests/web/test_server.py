"""The web server: headers, refusals, answers and the stream, without a cluster."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer

import spinney.web
from spinney.kube.client.client import Client
from spinney.kube.client.transport import Request, Response
from spinney.web.endpoints import Endpoints
from spinney.web.limits import ClientLimits
from spinney.web.rights import Reviewer
from spinney.web.server import VIEWS, application, serve
from spinney.web.settings import DashboardSettings, Limits, Proxy
from spinney.web.users import COOKIE, ByToken, NotLoggedIn, identity
from spinney.web.viewer import KindsServed, Viewers
from tests.web.rows import Fixed, queue, workload

STATIC = Path(spinney.web.__file__).parent / "static"


class ApiServer:
    """Answers reviews: the token `good` is alice's, and she may list queues, and what else is said here."""

    def __init__(self, *listed: str) -> None:
        self.tokens = {"good"}
        self.listed = {"queues", *listed}

    async def send(self, request: Request) -> Response:
        """One answer to a review, or the list of kinds of a group."""
        if request.method == "GET":
            jobs = {"name": "jobs", "kind": "Job", "namespaced": True}
            return Response(200, msgspec.json.encode({"resources": [jobs]}), "application/json")
        spec = msgspec.json.decode(request.body)["spec"]
        if "token" in spec:
            user = {"username": "alice", "groups": ["devs"]}
            status: Any = {"authenticated": True, "user": user} if spec["token"] in self.tokens else {}
        else:
            status = {"allowed": spec["resourceAttributes"]["resource"] in self.listed}
        return Response(201, msgspec.json.encode({"status": status}), "application/json")

    async def close(self) -> None:
        """Nothing is open."""


@asynccontextmanager
async def serving(
    source: Fixed, settings: DashboardSettings | None = None, api: ApiServer | None = None
) -> AsyncIterator[TestClient[Any, Any]]:
    """A client of a dashboard that shows a source."""
    settings = settings or DashboardSettings()
    time = asyncio.get_running_loop().time
    client = Client(api or ApiServer())
    limits = ClientLimits(settings.limits)
    viewers = Viewers(source.board, Reviewer(client, time), KindsServed(client))
    endpoints = Endpoints(settings, identity(settings, client, time), viewers, source, limits)
    async with TestClient(TestServer(application(settings, endpoints, limits))) as browser:
        yield browser


async def test_a_cluster_ended_because_another_one_took_the_usual_port_while_both_started() -> None:
    """Any free port will do where nobody named one; a port that somebody named must be free."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        link: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        anywhere = DashboardSettings(port=port, any_port=True)
        life = asyncio.create_task(serve(web.Application(), anywhere, link.set_result))
        assert str(port) not in await link
        life.cancel()
        with pytest.raises(OSError, match="in use"):
            await serve(web.Application(), DashboardSettings(port=port), print)


async def test_every_view_has_an_address_and_strict_headers() -> None:
    """Only our own scripts and styles run, nobody frames the page, nothing is fetched from elsewhere."""
    async with serving(Fixed()) as browser:
        for view in VIEWS:
            answer = await browser.get("/" + re.sub(r"{\w+}", "x", view))
            assert answer.status == 200
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
        missing = await browser.get("/nothing-here")
        assert missing.status == 404
        assert "Content-Security-Policy" in missing.headers


def test_the_page_has_no_inline_code_and_asks_nobody_else() -> None:
    """No markup from strings, no evaluated code, no address of another host."""
    for path in STATIC.rglob("*.*"):
        text = path.read_text()
        for banned in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert banned not in text, f"{path.name} uses {banned}"
        hosts = set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert hosts == set(), f"{path.name} names {hosts}"
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\ssrc=)", page) == []
    assert re.findall(r"\s(on\w+|style)=", page) == []


def test_the_page_asks_for_all_modules_at_once() -> None:
    """Modules that import modules would otherwise come one level after the other."""
    page = (STATIC / "index.html").read_text()
    modules = [
        path.relative_to(STATIC).as_posix() for folder in ("lib", "pages") for path in STATIC.glob(f"{folder}/*.js")
    ]
    assert [name for name in modules if f'<link rel="modulepreload" href="/static/{name}">' not in page] == []


async def test_files_outside_the_folder_are_not_served() -> None:
    """Whatever the path says."""
    async with serving(Fixed()) as browser:
        for path in ("/static/../component.py", "/static/%2e%2e/component.py", "/static//etc/passwd"):
            assert (await browser.get(path)).status == 404


async def test_a_browser_that_has_a_file_gets_no_second_one() -> None:
    """By its tag."""
    async with serving(Fixed()) as browser:
        first = await browser.get("/static/app.js")
        second = await browser.get("/static/app.js", headers={"If-None-Match": first.headers["ETag"]})
        assert second.status == 304


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80"])
async def test_names_of_other_sites_that_point_here_are_refused(host: str) -> None:
    """DNS rebinding: without a login only loopback names count."""
    async with serving(Fixed()) as browser:
        assert (await browser.get("/api/v1/workloads", headers={"Host": host})).status == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example", "Content-Type": "application/json"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Content-Type": "application/json"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
async def test_other_sites_cannot_log_anyone_in(headers: dict[str, str], status: int) -> None:
    """A form or script of another site is refused before it is read."""
    async with serving(Fixed(), DashboardSettings(login="token")) as browser:
        assert (await browser.post("/api/v1/session", data=b'{"token": "good"}', headers=headers)).status == status


async def test_a_token_logs_in_by_a_cookie_that_scripts_cannot_read() -> None:
    """HttpOnly and SameSite=Strict; afterwards the user sees what they may list."""
    async with serving(Fixed(queue("q"), workload("a")), DashboardSettings(login="token")) as browser:
        assert (await browser.get("/api/v1/queues")).status == 401
        assert (await browser.post("/api/v1/session", json={"token": "bad"})).status == 401
        answer = await browser.post("/api/v1/session", json={"token": "good"})
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith(f"{COOKIE}=good")
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert (await answer.json())["user"] == "alice"
        assert len((await (await browser.get("/api/v1/queues")).json())["items"]) == 1
        seen = await (await browser.get("/api/v1/workloads")).json()
        assert seen["items"] == []
        assert seen["partial"][0]["text"] == "You may not list pods in 1 namespace."
        await browser.delete("/api/v1/session", headers={"Content-Type": "application/json"})
        assert (await browser.get("/api/v1/queues")).status == 401


async def test_a_bearer_token_works_without_a_cookie() -> None:
    """For scripts."""
    async with serving(Fixed(queue("q")), DashboardSettings(login="token")) as browser:
        assert (await browser.get("/api/v1/queues", headers={"Authorization": "Bearer good"})).status == 200
        assert (await browser.get("/api/v1/queues", headers={"Authorization": "Bearer no"})).status == 401


async def test_a_token_that_is_no_text_ended_in_an_exception() -> None:
    """Nobody needs to be logged in to send one."""
    identity_by_token = ByToken(Client(ApiServer()), asyncio.get_running_loop().time)
    with pytest.raises(NotLoggedIn):
        await identity_by_token.review("\udcff")


@pytest.mark.parametrize(
    ("trusted", "headers", "status"),
    [
        ("127.0.0.0/8", {"X-Forwarded-User": "alice", "X-Forwarded-Groups": "devs, ops"}, 200),
        ("127.0.0.0/8", {}, 401),
        ("10.0.0.0/8", {"X-Forwarded-User": "alice"}, 401),
    ],
)
async def test_headers_of_a_proxy_count_only_from_the_proxy(trusted: str, headers: dict[str, str], status: int) -> None:
    """Anybody can send a header."""
    settings = DashboardSettings(login="proxy", proxy=Proxy(trusted=(trusted,)))
    async with serving(Fixed(queue("q")), settings) as browser:
        assert (await browser.get("/api/v1/queues", headers=headers)).status == status


async def test_a_client_that_asks_too_often_or_too_much_is_refused() -> None:
    """With the status that says so."""
    settings = DashboardSettings(login="token", limits=Limits(requests_per_second=0.001, burst=2, body_bytes=100))
    async with serving(Fixed(), settings) as browser:
        assert (await browser.post("/api/v1/session", json={"token": "x" * 200})).status == 413
        await browser.get("/api/v1/session")
        refused = await browser.get("/api/v1/session")
        assert refused.status == 429
        assert int(refused.headers["Retry-After"]) >= 1


ONE_NODE = {"changes": [{"type": "addNodes", "count": 1, "gpus": 8}]}


async def test_a_what_if_is_answered_in_words() -> None:
    """On loopback everybody may ask."""
    async with serving(Fixed()) as browser:
        answer = await browser.post("/api/v1/what-if", json=ONE_NODE)
        assert (await answer.json())["changes"] == ["add 1 node with 8 GPUs"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([{"type": "addNodes", "count": 1001, "gpus": 8}], "at most 1000"),
        ([{"type": "drainNode", "node": "n"}] * 51, "at most 50"),
        ([{"type": "create", "objects": [{}] * 51}], "at most 50"),
        ([{"type": "setQuota", "queue": 5, "gpus": 1}], "queue"),
        ([{"type": "unheardOf"}], "unheardOf"),
    ],
)
async def test_a_question_that_is_wrong_or_too_large_says_so(changes: list[object], text: str) -> None:
    """Before anything is computed."""
    async with serving(Fixed()) as browser:
        answer = await browser.post("/api/v1/what-if", json={"changes": changes})
        assert answer.status == 400
        assert text in await answer.text()


async def test_a_what_if_is_only_for_who_may_read_the_whole_cluster() -> None:
    """Its answer names workloads of every namespace."""
    async with serving(Fixed(queue("q")), DashboardSettings(login="token")) as browser:
        bearer = {"Authorization": "Bearer good"}
        assert (await browser.post("/api/v1/what-if", json=ONE_NODE, headers=bearer)).status == 403
        assert (await browser.post("/api/v1/what-if", json=ONE_NODE)).status == 401


async def test_what_if_questions_have_a_limit_of_their_own() -> None:
    """They cost more than other requests."""
    async with serving(Fixed(), DashboardSettings(limits=Limits(what_ifs_per_minute=1))) as browser:
        assert (await browser.post("/api/v1/what-if", json=ONE_NODE)).status == 200
        assert (await browser.post("/api/v1/what-if", json=ONE_NODE)).status == 429
        assert (await browser.get("/api/v1/session")).status == 200


async def next_message(answer: ClientResponse) -> dict[str, str]:
    """The next event of a stream, by field."""
    fields: dict[str, str] = {}
    async for line in answer.content:
        name, _, value = line.decode().strip().partition(": ")
        if name in ("id", "event", "data"):
            fields[name] = value
        elif not name and fields:
            return fields
    return fields


async def test_a_stream_brings_what_changed_since_a_list() -> None:
    """Rows of the kinds that were asked for, and the keys of those that are gone."""
    source = Fixed(queue("q"), workload("a"))
    async with serving(source) as browser:
        listed = await browser.get("/api/v1/workloads")
        tag = listed.headers["Spinney-Seq"]
        source.show(queue("q", gpus=2.0), workload("b"))
        async with browser.get("/api/v1/stream", params={"kinds": "workloads", "since": tag}) as stream:
            message = await next_message(stream)
            delta = msgspec.json.decode(message["data"])
            assert [row["ref"]["name"] for row in delta["changed"]["workloads"]] == ["b"]
            assert delta["removed"] == {"workloads": ["default/job.batch/a"]}
            assert "queues" not in delta["changed"]
            source.show(workload("c"))
            later = await next_message(stream)
            assert later["id"] == "epoch-3"


@pytest.mark.parametrize("since", ["earlier-1", "epoch-99", "epoch-x"])
async def test_a_reader_of_an_earlier_server_starts_over(since: str) -> None:
    """Numbers of another process mean nothing here."""
    async with (
        serving(Fixed(queue("q"))) as browser,
        browser.get("/api/v1/stream", params={"kinds": "queues", "since": since}) as stream,
    ):
        assert (await next_message(stream))["event"] == "reset"


async def test_a_stream_shows_only_what_its_user_may_see() -> None:
    """Neither rows nor the names of rows that are gone."""
    source = Fixed(queue("q"), workload("a"))
    async with serving(source, DashboardSettings(login="token")) as browser:
        bearer = {"Authorization": "Bearer good"}
        tag = source.board.tag
        async with browser.get("/api/v1/stream", params={"since": tag}, headers=bearer) as stream:
            source.show(queue("q", gpus=3.0), workload("b"))
            delta = msgspec.json.decode((await next_message(stream))["data"])
            assert list(delta["changed"]) == ["queues"]
            assert delta["removed"] == {}


async def test_a_stream_outlived_the_token_that_it_was_opened_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing more is sent once the cluster does not accept the token any longer."""
    monkeypatch.setattr("spinney.web.users._REVIEW_SECONDS", 0)
    source, api = Fixed(queue("q")), ApiServer()
    async with serving(source, DashboardSettings(login="token"), api) as browser:
        bearer = {"Authorization": "Bearer good"}
        async with browser.get("/api/v1/stream", headers=bearer) as stream:
            assert await stream.content.readuntil(b"\n\n") == b"retry: 1000\n\n"
            # The stream now waits for a change.
            for _ in range(50):
                await asyncio.sleep(0)
            api.tokens.clear()
            source.show(queue("q", 2.0))
            assert await stream.content.read() == b""


async def test_the_topology_told_what_pods_use_that_may_not_be_listed() -> None:
    """Who may list nodes only gets the levels, without what is free in their domains."""
    bearer = {"Authorization": "Bearer good"}
    for listed, names in (((), []), (("nodes",), []), (("nodes", "pods"), ["r0"])):
        async with serving(Fixed(), DashboardSettings(login="token"), ApiServer(*listed)) as browser:
            answer = await (await browser.get("/api/v1/topology", headers=bearer)).json()
            assert [domain["name"] for domain in answer["domains"]] == names
            assert bool(answer["levels"]) is bool(listed)


async def test_streams_per_client_are_limited() -> None:
    """The one too many is told so."""
    async with (
        serving(Fixed(queue("q")), DashboardSettings(limits=Limits(streams=1))) as browser,
        browser.get("/api/v1/stream") as stream,
    ):
        assert stream.status == 200
        assert (await browser.get("/api/v1/stream")).status == 429


@pytest.mark.parametrize(
    ("at", "status"), [("yesterday", 400), ("2026-01-31T12:00:00", 400), ("2026-01-31T12:00:00Z", 404)]
)
async def test_a_moment_that_is_no_time_or_not_recorded(at: str, status: int) -> None:
    """Says which."""
    async with serving(Fixed()) as browser:
        assert (await browser.get("/api/v1/history", params={"at": at})).status == status


async def test_every_path_of_the_api_is_in_the_documentation() -> None:
    """One table says what each of them answers."""
    page = (Path(__file__).parents[2] / "docs" / "contributors" / "dashboard.md").read_text()
    async with serving(Fixed()) as browser:
        resources = browser.app.router.resources() if browser.app is not None else ()
        served = {each.canonical for each in resources if each.canonical.startswith("/api/")}
    assert served == set(re.findall(r"^\| `(/api/v1/[^`]*)`", page, re.MULTILINE))
