"""`spinney run` and `spinney manifests`: what they print, and one clear line for each mistake."""

from __future__ import annotations

import asyncio
import base64
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
import yaml
from aiohttp import web
from click.testing import CliRunner

from spinney.app.components import load, registered
from spinney.cli.main import COMMANDS, main
from spinney.testing.process import free_ports
from tests import worlds
from tests.kube.tls import AUTHORITY, serving
from tests.worlds import Cluster

SPINNEY = [sys.executable, "-m", "spinney.cli"]
COMPONENT = "podgrouper"


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def spinney(*arguments: str) -> Done:
    """Run the command in this process."""
    result = CliRunner().invoke(main, arguments)
    return Done(result.exit_code, result.stdout, result.stderr)


async def spinney_apart(*arguments: str) -> Done:
    """Run the command as a user does, while this process serves."""
    ran = await worlds.run(*SPINNEY, *arguments)
    return Done(ran.code, ran.out, ran.err)


def kubeconfig(folder: Path, server: str, **user: str) -> str:
    """A kubeconfig file for a server."""
    authority = base64.b64encode(AUTHORITY.cert_pem.bytes()).decode()
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def assert_one_line(done: Done, *parts: str) -> None:
    """A failure is one line on stderr, without a stack trace, and a non-zero exit code."""
    assert done.code != 0
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("spinney: ")
    for part in parts:
        assert part in line


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with its whole name."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for part in command.list_commands(context):
        inner = command.get_command(context, part)
        assert inner is not None
        yield from leaves(inner, f"{name} {part}")


def test_help_lists_every_command() -> None:
    """`spinney --help` names every command, and says what it does."""
    listed = spinney("--help").out
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\w", listed, re.MULTILINE), name


@pytest.mark.parametrize(("name", "command"), [pytest.param(*leaf, id=leaf[0]) for leaf in leaves(main, "spinney")])
def test_help_has_examples(name: str, command: click.Command) -> None:
    """Each command's help shows how it is used."""
    text = command.get_help(click.Context(command, info_name=name))
    assert "Example" in text
    assert f"  {name}" in text


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["run", "nonsense"], "'nonsense' is not a component; there are: "),
        (["run"], "Missing argument 'COMPONENT...'"),
        (["run", COMPONENT, "--nonsense"], "No such option '--nonsense'"),
        (["nonsense"], "No such command 'nonsense'"),
        (["manifests"], "name a component"),
        (["manifests", "nonsense"], "'nonsense' is not a component"),
        (["run", COMPONENT, "--webhook-url", "http://x"], "does not start with https://"),
        (["run", COMPONENT, "--health-listen", "8080"], "'8080' is not HOST:PORT"),
        (["run", COMPONENT, "--webhook-cert", "x"], "go together"),
        (["run", COMPONENT, "--config", "nonsense=x"], "nonsense: not among the components"),
        (["run", COMPONENT, "--kubeconfig", "/absent/file"], "kubeconfig /absent/file: No such file"),
        (["run", COMPONENT, "--lease-duration", "5"], "--lease-duration > --renew-deadline"),
        (["run", COMPONENT, "--qps", "fast"], "'fast' is not a valid float"),
        (["run", COMPONENT, "--only", "kai"], "none of these components has parts to choose from"),
        (["up", "--nodes", "-1"], "'--nodes': -1 is not in the range x>=0"),
        (["up", "--port", "99999"], "'--port': 99999 is not in the range 0<=x<=65535"),
        (["conformance", "kai-scheduler", __file__], "not JSON: "),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], part: str) -> None:
    """What the user did wrong is said in one line."""
    assert_one_line(spinney(*arguments), part)


def test_a_broken_kubeconfig(tmp_path: Path) -> None:
    """A kubeconfig that is no YAML is named with the place of the mistake."""
    path = tmp_path / "kubeconfig"
    path.write_text("clusters: [")
    assert_one_line(spinney("run", COMPONENT, "--kubeconfig", str(path)), str(path), "not YAML")


async def test_a_backend_that_does_not_exist_is_a_wrong_call(cluster: Cluster) -> None:
    """The registered ones are named, and nothing is left running."""
    kubeconfig = str(await cluster.kubeconfig())
    ran = await spinney_apart("run", "backends", "--only", "slurm", "--no-leader-election", "--kubeconfig", kubeconfig)
    assert ran.code == 2
    assert ran.err.splitlines()[-1] == (
        "spinney: no backend slurm is registered, only default, kai, koordinator, volcano, yunikorn"
    )


def test_an_unreachable_server(tmp_path: Path) -> None:
    """A server that nobody listens for is named."""
    (port,) = free_ports(1)
    url = f"https://127.0.0.1:{port}"
    assert_one_line(spinney("run", COMPONENT, "--kubeconfig", kubeconfig(tmp_path, url)), url, "not reachable")


async def unauthorized(_: web.BaseRequest) -> web.Response:
    return web.Response(status=401, text='{"kind":"Status","message":"Unauthorized"}')


async def test_a_server_with_an_expired_certificate(tmp_path: Path) -> None:
    """A server whose certificate has expired is not talked to, and the line says why."""
    async with serving(unauthorized, not_after=datetime(2020, 1, 1, tzinfo=UTC)) as server:
        config = kubeconfig(tmp_path, server.url)
        assert_one_line(await spinney_apart("run", COMPONENT, "--kubeconfig", config), server.url, "has expired")


async def test_refused_credentials(tmp_path: Path) -> None:
    """A server that does not know us says so, and we pass it on."""
    async with serving(unauthorized) as server:
        config = kubeconfig(tmp_path, server.url, token="old")
        done = await spinney_apart("run", COMPONENT, "--kubeconfig", config)
    assert_one_line(done, "does not accept our credentials")


@pytest.mark.parametrize("name", sorted(registered()))
def test_components_are_what_they_say(name: str) -> None:
    """Each entry point leads to the component of its name."""
    assert load(name).name == name
    assert load(name).summary


def test_manifests_are_complete() -> None:
    """For each component: an account, its roles bound to it, and its webhooks."""
    documents = list(yaml.safe_load_all(spinney("manifests", "--all", "--namespace", "here").out))
    kinds = [(document["kind"], document["metadata"]["name"]) for document in documents]
    assert len(kinds) == len(set(kinds))
    for name in registered():
        account = f"spinney-{load(name).name}"
        for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"):
            assert (kind, account) in kinds
        for mutating, kind in ((True, "Mutating"), (False, "Validating")):
            has = any(hook.mutating == mutating for hook in load(name).webhooks)
            assert ((f"{kind}WebhookConfiguration", account) in kinds) is has


def test_manifests_of_some_backends() -> None:
    """With their CRDs on request, and without the rights to other schedulers' objects."""
    documents = list(yaml.safe_load_all(spinney("manifests", "backends", "--only", "volcano", "--crds").out))
    defined = {document["spec"]["group"] for document in documents if document["kind"] == "CustomResourceDefinition"}
    (role,) = (document for document in documents if document["kind"] == "ClusterRole")
    groups = {group for rule in role["rules"] for group in rule["apiGroups"]}
    assert defined == {"scheduling.volcano.sh", "topology.volcano.sh"}
    assert defined <= groups
    assert "scheduling.run.ai" not in groups


async def test_a_component_runs_until_told_to_stop(cluster: Cluster) -> None:
    """Against a server, a component gets ready, answers on its health pages, and ends with code 0 on SIGTERM."""
    (port,) = free_ports(1)
    namespace = await cluster.namespace()
    listening = ["--health-listen", f"127.0.0.1:{port}", "--namespace", namespace, "--log-format", "json"]
    process = await asyncio.create_subprocess_exec(
        *SPINNEY, "run", "queue-controller", "--kubeconfig", str(await cluster.kubeconfig()), *listening,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        async with asyncio.timeout(120):
            while b"leader.started" not in await process.stderr.readline():
                assert process.returncode is None
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert (await reader.readline()).split()[1] == b"200"
        writer.close()
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(120):
            await process.communicate()
    assert process.returncode == 0


async def test_a_component_with_webhooks_and_only_its_rights(cluster: Cluster, tmp_path: Path) -> None:
    """With the rights that `spinney manifests` prints, `spinney run --webhook-url` serves and registers by URL."""
    namespace = await cluster.namespace()
    (port,) = free_ports(1)
    url = f"https://127.0.0.1:{port}"
    printed = spinney("manifests", "admission", "--namespace", namespace).out
    rights = [document for document in yaml.safe_load_all(printed) if "Webhook" not in document["kind"]]
    applied = await cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(rights))
    assert applied.code == 0, applied.err
    account = await cluster.kubeconfig(f"system:serviceaccount:{namespace}:spinney-admission")
    where = ["--kubeconfig", str(account), "--namespace", namespace, "--webhook-url", url]
    process = await asyncio.create_subprocess_exec(*SPINNEY, "run", "admission", *where, stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        seen = ""
        async with asyncio.timeout(120):
            while "webhook.registered" not in seen:
                line = await process.stderr.readline()
                assert line, seen
                seen += line.decode()
        shown = await cluster.kubectl("get", "mutatingwebhookconfigurations", "spinney-admission", "-o", "yaml")
        assert f"url: {url}/" in shown.out
        assert "caBundle: " in shown.out
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(120):
            await process.communicate()
        for kind in ("mutating", "validating"):
            await cluster.kubectl("delete", f"{kind}webhookconfigurations", "spinney-admission", "--ignore-not-found")
    assert "Traceback" not in seen
