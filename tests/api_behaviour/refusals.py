"""Requests that Kubernetes refuses, as data: `refusals/*.yaml` holds each with the answer of the real server.

An entry says what it is `about`, the `request` (method and path, `{ns}` for the test's namespace), its `body`,
the `crd` it needs (a name in schemas.yaml), what was done `before` it, and the `answer`: code, reason, message.
`ours: true` says that the embedded server has its own sentence: only code, reason and the fields must agree.
`python -m tests.api_behaviour.refusals` asks the real server for the answers that are missing, so that a new entry
needs none.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import yaml

from spinney.testing.controlplane import ControlPlane
from tests.api_behaviour.crds import install, named
from tests.api_behaviour.wire import Answer, Api, Json
from tests.worlds import Cluster, Real

FOLDER = Path(__file__).with_name("refusals")
KINDS = {"json": "json-patch", "merge": "merge-patch", "strategic": "strategic-merge-patch"}


def load() -> dict[str, Json]:
    """Every entry by a readable id."""
    entries = {}
    for file in sorted(FOLDER.glob("*.yaml")):
        for entry in yaml.safe_load(file.read_text()):
            name = f"{file.stem}: {entry['about']}"
            assert name not in entries, f"two entries are about {name!r}"
            entries[name] = entry
    return entries


async def ask(api: Api, namespace: str, entry: Json) -> Answer:
    """Install its CRD, do what comes before, which has to work, then make the request."""
    if "crd" in entry:
        await install(api, named(entry["crd"]))
    for step in entry.get("before", ()):
        (await _request(api, namespace, step)).ok()
    return await _request(api, namespace, entry)


def told(answer: Answer, namespace: str) -> list[Any]:
    """Code, reason and message of an answer, without what differs from run to run."""
    try:
        body = answer.body
        reason, message = body.get("reason"), str(body.get("message"))
    except json.JSONDecodeError:
        reason, message = None, answer.raw.decode()
    message = re.sub(rf"\b{namespace}\b", "{ns}", message)
    message = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "{uid}", message)
    # Two messages carry a dump of Go's structs or of the whole object; what comes before it is the message.
    if "pod updates may not change fields" in message:
        message = message.partition("\n")[0]
    message = re.sub(r'patch: Invalid value: ".*": ', "patch: Invalid value: {object}: ", message)
    return [answer.code, reason, re.sub(r"in record \(\d+\)", "in record ({rv})", message)]


def fields_agree(answer: Answer, recorded: str) -> bool:
    """Whether every field that an answer names as a cause is one of the recorded message."""
    causes = (answer.body.get("details") or {}).get("causes") or ()
    return all(f"{cause['field']}: " in recorded for cause in causes if cause.get("field"))


async def _request(api: Api, namespace: str, entry: Json) -> Answer:
    method, _, path = entry["request"].replace("{ns}", namespace).partition(" ")
    path, _, query = path.partition("?")
    body: Any = entry.get("body")
    if isinstance(body, str):
        body = body.replace("{ns}", namespace).encode()
    elif body is not None:
        body = json.loads(json.dumps(body).replace("{ns}", namespace))
    method, _, patch = method.partition(":")
    kind = f"application/{KINDS[patch]}+json" if patch in KINDS else entry.get("type", "application/json")
    return await api.call(method, path, body, kind, **dict(parse_qsl(query, keep_blank_values=True)))


async def _record(plane: ControlPlane) -> None:
    number = 0
    for file in sorted(FOLDER.glob("*.yaml")):
        entries = yaml.safe_load(file.read_text())
        for entry in entries:
            if "answer" in entry:
                continue
            number += 1
            async with AsyncExitStack() as stack:
                cluster = Cluster(Real(plane), stack, number)
                namespace = await cluster.namespace()
                entry["answer"] = told(await ask(Api(cluster.transport()), namespace, entry), namespace)
                print(file.stem, entry["about"], entry["answer"], sep=" | ")
        file.write_text(yaml.safe_dump(entries, sort_keys=False, width=150, allow_unicode=True))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder)) as running:
        asyncio.run(_record(running))
