"""Objects of every built-in kind in many variants, as data: `variants/*.yaml` holds what the real server makes of each.

A table names a kind by its `path`, an object as `base`, and rows of three: what the row is about, how the object
differs from the base (members by their path; null takes one away), and the answer. A fourth value, `ours`, says that
the embedded server refuses it in its own words: only the field, or the code, must agree. `new` rows are created;
`changed` and `patched` rows replace or merge into the base, `status` rows merge into its status. An answer that is text
says why the object is invalid; a list is the code and message of another refusal; a map holds the members that the
server gave, and its warnings, beside those that it gives the base (`gives`). All but the base are dry runs.
`python -m tests.api_behaviour.variants` asks the real server for the answers that are missing.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import yaml

from spinney.testing.controlplane import ControlPlane
from tests.api_behaviour.wire import MERGE, Answer, Api, Json
from tests.worlds import Cluster, Real

FOLDER = Path(__file__).with_name("variants")
SORTS = ("new", "changed", "patched", "status")
# What is said so often that tables have names for it.
RULES = {
    "{label}": "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    "{subdomain}": "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    "{name part}": "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    "{label value}": "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
}
_VOLATILE = ("uid", "creationTimestamp", "resourceVersion", "managedFields", "name", "namespace")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ADDRESS = re.compile(r"\b10\.0\.\d+\.\d+\b")
_NOW = re.compile(r"\b20(2[5-9]|[3-9]\d)-\d\d-\d\dT[\d:]+Z")
_TOKEN = re.compile(r"kube-api-access-[a-z0-9]{5}")
_PORT = re.compile(r"\b3[0-2]\d{3}\b")


def load() -> dict[str, Json]:
    """Every table by a readable id."""
    tables = {}
    for file in sorted(FOLDER.glob("*.yaml")):
        for table in yaml.safe_load_all(file.read_text()):
            tables[f"{file.stem}: {table['about']}"] = table
    return tables


def without_words(answer: Any) -> Any:
    """What both servers agree on where our own words differ: the first field, or the code."""
    if isinstance(answer, str):
        return answer.removeprefix("[").partition(": ")[0]
    return answer[0] if isinstance(answer, list) else answer


def variant(base: Json, changes: Json) -> Json:
    """The base with members set or, for null, taken away; `a.0.b` is a path, and so is `/a/0/b.c`."""
    document = copy.deepcopy(base)
    for path, value in changes.items():
        *way, last = path[1:].split("/") if path.startswith("/") else path.split(".")
        node: Any = document
        for part in way:
            node = node[int(part)] if isinstance(node, list) else node.setdefault(part, {})
        key: Any = int(last) if isinstance(node, list) else last
        if value is None:
            del node[key]
        else:
            node[key] = value
    return document


class Tables:
    """One table asked of one server."""

    def __init__(self, api: Api, table: Json, namespace: str, name: str) -> None:
        self._api, self._table, self._name = api, table, name
        self._path = table["path"].replace("{ns}", namespace)
        self._namespace = namespace
        self._base = self._placed(table["base"])

    async def begin(self) -> Any:
        """Create the base; what the server gave it."""
        answer = await self._api.post(self._path, self._base)
        return self._told(answer, self._base, {})

    async def end(self) -> None:
        """Leave nothing behind."""
        await self._api.delete(f"{self._path}/{self._name}", {"gracePeriodSeconds": 0})

    async def ask(self, sort: str, changes: Json) -> Any:
        """What the server makes of a row."""
        where = f"{self._path}/{self._name}"
        changes = self._filled(changes)
        if sort in ("patched", "status"):
            where += "/status" if sort == "status" else ""
            answer = await self._api.call("PATCH", where, changes, MERGE, dryRun="All")
            return self._told(answer, self._base, None)
        document = variant(self._base, changes)
        if sort == "changed":
            return self._told(await self._api.put(where, document, dryRun="All"), document, None)
        if (document.get("metadata") or {}).get("name") == self._name:
            document["metadata"]["name"] = f"{self._name}-new"
        answer = await self._api.post(self._path, document, dryRun="All")
        return self._told(answer, document, self._table.get("gives") or {})

    def _placed(self, document: Json) -> Json:
        filled = self._filled(document)
        return {**filled, "metadata": {"name": self._name, **(filled.get("metadata") or {})}}

    def _filled(self, value: Any) -> Any:
        return json.loads(json.dumps(value).replace("{ns}", self._namespace))

    def _told(self, answer: Answer, sent: Json, usual: Json | None) -> Any:
        body = self._plain(answer.body)
        if answer.code >= 400:
            _, invalid, why = body["message"].partition(" is invalid: ")
            return why if invalid and answer.code == 422 else [answer.code, body["message"]]
        warned = {"warnings": self._plain(answer.warnings)} if answer.warnings else {}
        if usual is None:
            # Controllers may have been here, too: what they made of the object is theirs.
            return warned
        described = _given(body, self._plain(sent)) | warned
        return {
            **{path: value for path, value in described.items() if path not in usual or usual[path] != value},
            **{path: "gone" for path in usual if path not in described and not _has(body, path)},
        }

    def _plain(self, value: Any) -> Any:
        """Without what differs from run to run."""
        text = json.dumps(value).replace(self._name, "{name}").replace(self._namespace, "{ns}")
        text = _TOKEN.sub("kube-api-access", _NOW.sub("{now}", text))
        text = _PORT.sub("30000", _ADDRESS.sub("10.0.0.1", _UID.sub("{uid}", text))).replace("{name}-new", "{name}")
        for rule, words in RULES.items():
            text = text.replace(json.dumps(words)[1:-1], rule)
        return json.loads(text)


def _given(body: Any, sent: Any, path: str = "") -> Json:
    """Members that are not as they were sent, by their path."""
    if isinstance(body, dict) and isinstance(sent, dict) and body:
        defaults: Json = {}
        for key, value in body.items():
            where = f"{path}.{key}" if path else key
            if where in ("kind", "apiVersion") or (path == "metadata" and key in _VOLATILE):
                continue
            defaults |= _given(value, sent.get(key, {} if isinstance(value, dict) else None), where)
        return defaults
    if isinstance(body, list) and isinstance(sent, list) and len(body) == len(sent):
        return {
            key: value
            for at, pair in enumerate(zip(body, sent, strict=True))
            for key, value in _given(*pair, f"{path}.{at}").items()
        }
    return {} if body == sent and not (body == {} and sent == {}) else {path: body}


def _has(body: Any, path: str) -> bool:
    for part in path.split("."):
        if isinstance(body, list):
            body = body[int(part)] if int(part) < len(body) else None
        elif isinstance(body, dict) and part in body:
            body = body[part]
        else:
            return False
    return True


async def record(plane: ControlPlane) -> None:
    """Fill in what is missing."""
    for number, file in enumerate(sorted(FOLDER.glob("*.yaml"))):
        tables = list(yaml.safe_load_all(file.read_text()))
        for at, table in enumerate(tables):
            async with AsyncExitStack() as stack:
                cluster = Cluster(Real(plane), stack, number * 100 + at)
                namespace = await cluster.namespace()
                entries = Tables(Api(cluster.transport()), table, namespace, cluster.unique("base"))
                table["gives"] = await entries.begin()
                assert isinstance(table["gives"], dict), (file, table["about"], table["gives"])
                for sort in SORTS:
                    for row in table.get(sort) or ():
                        if len(row) < 3:
                            row.append(await entries.ask(sort, row[1]))
                await entries.end()
        file.write_text("---\n".join(map(_written, tables)))


def _written(table: Json) -> str:
    """A table with one row a line."""
    lines = []
    for key, value in table.items():
        if key in SORTS:
            lines.append(f"{key}:\n")
            lines += [f"- {json.dumps(row, ensure_ascii=False)}\n" for row in value]
        else:
            lines.append(f"{key}: {json.dumps(value, ensure_ascii=False)}\n")
    return "".join(lines)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder)) as running:
        asyncio.run(record(running))
