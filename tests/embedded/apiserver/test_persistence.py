"""A cluster whose state outlives its process."""

from __future__ import annotations

import asyncio
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from spinney.embedded.apiserver.persistence import DataFolder
from spinney.embedded.apiserver.store.journal import DataError
from spinney.kube.chance import Chance
from spinney.kube.client.transport import User
from spinney.kube.clock import SystemClock
from tests.embedded.conftest import MAPS, MERGE, Asker


async def opened(folder: Path) -> tuple[DataFolder, Asker]:
    """A server on a folder."""
    data = DataFolder(folder)
    server = data.server(SystemClock(), Chance(1))
    await server.start()
    return data, Asker(server)


async def test_everything_is_there_again(tmp_path: Path) -> None:
    """After a restart objects, versions, definitions and tokens are as they were, and counting goes on."""
    data, ask = await opened(tmp_path)
    made = await ask("POST", MAPS, {"metadata": {"name": "a", "labels": {"x": "1"}}, "data": {"k": "v"}})
    await ask("POST", MAPS, {"metadata": {"name": "b"}})
    await ask("DELETE", f"{MAPS}/b")
    definition = {
        "metadata": {"name": "things.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    assert (await ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)).status == 201
    thing = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}}
    assert (await ask("POST", "/apis/x.io/v1/namespaces/default/things", thing)).status == 201
    token = (await ask("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {}))["status"]["token"]
    version = ask.server.store.version
    await data.close()

    data, ask = await opened(tmp_path)
    assert (await ask("GET", f"{MAPS}/a")).body == made.body
    assert (await ask("GET", f"{MAPS}/b")).status == 404
    assert (await ask("GET", "/apis/x.io/v1/namespaces/default/things/t")).status == 200
    assert [item["metadata"]["name"] for item in (await ask("GET", f"{MAPS}?labelSelector=x=1"))["items"]] == ["a"]
    assert ask.server.authenticator.user_of_token(token).name == "system:serviceaccount:default:default"
    assert ask.server.store.version == version
    changed = await ask("PATCH", f"{MAPS}/a", {"data": {"k": "w"}}, kind=MERGE)
    assert int(changed["metadata"]["resourceVersion"]) > version
    await data.close()


async def test_a_watch_goes_on_after_a_restart(tmp_path: Path) -> None:
    """A watcher that has seen everything resumes; one that missed something is told so."""
    data, ask = await opened(tmp_path)
    old = (await ask("POST", MAPS, {"metadata": {"name": "a"}}))["metadata"]["resourceVersion"]
    last = (await ask("POST", MAPS, {"metadata": {"name": "b"}}))["metadata"]["resourceVersion"]
    await data.close()
    data, ask = await opened(tmp_path)
    stream = await ask.watch(f"{MAPS}?resourceVersion={last}")
    await ask("POST", MAPS, {"metadata": {"name": "c"}})
    event = msgspec.json.decode((await anext(stream)).splitlines()[0])
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "c")
    missed = await ask.watch(f"{MAPS}?resourceVersion={old}")
    error = msgspec.json.decode((await anext(missed)).splitlines()[0])
    assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
    await data.close()


async def test_dependents_of_an_owner_that_went_are_collected_after_a_restart(tmp_path: Path) -> None:
    """What the collector had not done yet when the process ended, it does at the next start."""
    data, ask = await opened(tmp_path)
    owner = await ask("POST", MAPS, {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await ask("POST", MAPS, {"metadata": {"name": "child", "ownerReferences": [reference]}})
    item = ask.server.store.get("/configmaps", "default/owner")
    assert item is not None
    ask.server.store.delete("/configmaps", "default/owner", msgspec.json.decode(item.body))
    await data.close()
    data, ask = await opened(tmp_path)
    await ask.settle()
    assert (await ask("GET", f"{MAPS}/child")).status == 404
    await data.close()


async def test_one_process_at_a_time(tmp_path: Path) -> None:
    """A folder in use is refused with a reason."""
    data, _ = await opened(tmp_path)
    with pytest.raises(DataError, match="is another process running on this folder"):
        DataFolder(tmp_path)
    await data.close()


PROGRAM = """
import asyncio, sys
from pathlib import Path
from spinney.embedded.apiserver.persistence import DataFolder
from spinney.kube.chance import Chance
from spinney.kube.clock import SystemClock
from spinney.kube.client.transport import Request, User
import msgspec

async def main():
    server = DataFolder(Path(sys.argv[1])).server(SystemClock(), Chance())
    await server.start()
    user = User("admin", ("system:masters",))
    for number in range(100000):
        body = msgspec.json.encode({"metadata": {"name": f"m-{number}"}})
        path = "/api/v1/namespaces/default/configmaps"
        answer = await server.handle(Request("POST", path, (), {"content-type": "application/json"}, body, user))
        assert answer.status == 201
        print(number, flush=True)

asyncio.run(main())
"""


async def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Everything that the process said yes to before it was killed is there after."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, str(tmp_path), stdout=pipe)
    assert process.stdout is not None
    for _ in range(200):
        line = await process.stdout.readline()
    process.kill()
    rest = await process.stdout.read()
    acknowledged = int([line, *rest.splitlines()][-1])
    await process.wait()
    data, ask = await opened(tmp_path)
    names = {item["metadata"]["name"] for item in (await ask("GET", MAPS))["items"]}
    assert {f"m-{number}" for number in range(acknowledged + 1)} <= names
    await data.close()


async def test_quotas_hold_after_a_restart(tmp_path: Path) -> None:
    """What a namespace may hold, and what it holds, is known again."""
    data, ask = await opened(tmp_path)
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "1"}}}
    assert (await ask("POST", "/api/v1/namespaces/default/resourcequotas", quota)).status == 201
    assert (await ask("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "a"}})).status == 201
    await asyncio.sleep(0)
    await data.close()

    data, ask = await opened(tmp_path)
    assert (await ask("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "b"}})).status == 403
    stored = await ask("GET", "/api/v1/namespaces/default/resourcequotas/q")
    assert stored["status"]["used"] == {"secrets": "1"}
    await data.close()


async def test_rights_hold_after_a_restart(tmp_path: Path) -> None:
    """Roles and bindings count as they did, for nobody else, and can be taken back."""
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    ann, bob = User("ann", ("system:authenticated",)), User("bob", ("system:authenticated",))
    data, ask = await opened(tmp_path)
    rules = [{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]}]
    assert (await ask("POST", f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": rules})).status == 201
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}
    binding = {"metadata": {"name": "b"}, "roleRef": role, "subjects": [subject]}
    assert (await ask("POST", f"{rbac}/rolebindings", binding)).status == 201
    await data.close()

    data, ask = await opened(tmp_path)
    assert [(await Asker(ask.server, user)("GET", MAPS)).status for user in (ann, bob)] == [200, 403]
    assert (await ask("DELETE", f"{rbac}/rolebindings/b")).status == 200
    assert (await Asker(ask.server, ann)("GET", MAPS)).status == 403
    await data.close()


class Disk:
    """The disk below a folder: how many pages it has room for, and whether commits wait."""

    def __init__(self, data: DataFolder) -> None:
        self._journal = data.journal
        self._write = data.journal._write
        self.committing, self.go_on = threading.Event(), threading.Event()

    def resize(self, pages: int) -> None:
        """Give the database room for so many pages, but no fewer than it has."""
        run = self._journal._database.execute
        self._journal._worker.submit(run, f"PRAGMA max_page_count = {pages}").result()

    def slow_down(self) -> None:
        """Let every commit wait until `go_on` is set."""

        def write(batch: Any) -> None:
            self.committing.set()
            self.go_on.wait()
            self._write(batch)

        self._journal._write = write  # type: ignore[method-assign]


async def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Who writes is told that there is no room; nothing piles up; with room again everything goes on."""
    data, ask = await opened(tmp_path)
    disk = Disk(data)
    stream = await ask.watch(f"{MAPS}?resourceVersion={ask.server.store.version}")
    disk.resize(1)
    accepted: list[str] = []
    while True:
        name = f"m-{len(accepted)}"
        answer = await ask("POST", MAPS, {"metadata": {"name": name}, "data": {"k": "v" * 20_000}})
        if answer.status != 201:
            break
        accepted.append(name)
    assert (answer.status, answer["reason"]) == (503, "ServiceUnavailable")
    assert answer.message == "the store cannot be written: database or disk is full"
    assert answer.headers["retry-after"] == "1"
    watching = asyncio.create_task(anext(stream))
    version = ask.server.store.version
    for number in range(10):
        assert (await ask("POST", MAPS, {"metadata": {"name": f"later-{number}"}})).status == 503
    assert ask.server.store.version == version
    disk.resize(1 << 30)
    assert (await ask("POST", MAPS, {"metadata": {"name": "last"}})).status == 201
    # A watch, which ended the whole process, was only late.
    assert b'"ADDED"' in await watching
    await stream.aclose()
    await data.close()

    data, ask = await opened(tmp_path)
    names = {item["metadata"]["name"] for item in (await ask("GET", MAPS))["items"]}
    assert {*accepted, "last"} <= names
    assert not {name for name in names if name.startswith("later-")}
    await data.close()


async def test_a_slow_disk_delays_answers_and_loses_nothing(tmp_path: Path) -> None:
    """Nobody is told of a write before it is stored: neither who made it, nor who reads, nor who watches."""
    data, ask = await opened(tmp_path)
    disk = Disk(data)
    stream = await ask.watch(f"{MAPS}?resourceVersion={ask.server.store.version}")
    disk.slow_down()
    writing = asyncio.create_task(ask("POST", MAPS, {"metadata": {"name": "a"}}))
    await asyncio.to_thread(disk.committing.wait)
    reading, watching = asyncio.create_task(ask("GET", f"{MAPS}/a")), asyncio.create_task(anext(stream))
    done, _ = await asyncio.wait({writing, reading, watching}, timeout=0.05)
    assert not done
    copy = tmp_path.with_name(f"{tmp_path.name}-copy")
    shutil.copytree(tmp_path, copy)
    disk.go_on.set()
    assert ((await writing).status, (await reading).status) == (201, 200)
    assert b'"ADDED"' in await watching
    await stream.aclose()
    await data.close()
    # What a crash at that moment left has not the object, which nobody was told of.
    data, ask = await opened(copy)
    assert (await ask("GET", f"{MAPS}/a")).status == 404
    await data.close()
