"""Kubeconfigs: every way to say who we are, and one clear line where it says nothing usable."""

from __future__ import annotations

import base64
import os
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from spinney.kube.client.credentials import ConfigError
from spinney.kube.client.kubeconfig import find_server, from_kubeconfig, in_cluster

AUTHORITY = trustme.CA()
CERTIFICATE = AUTHORITY.issue_cert("user")


def encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def config(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> dict[str, Any]:
    """A kubeconfig with one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://example.com:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
    }


def written(folder: Path, document: Any, name: str = "config") -> Path:
    path = folder / name
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def certificate_data() -> dict[str, str]:
    return {
        "client-certificate-data": encoded(CERTIFICATE.cert_chain_pems[0].bytes()),
        "client-key-data": encoded(CERTIFICATE.private_key_pem.bytes()),
    }


async def test_a_token(tmp_path: Path) -> None:
    """Server, namespace and token come from the current context."""
    server = from_kubeconfig([written(tmp_path, config(user={"token": "secret"}))])
    assert (server.url, server.namespace) == ("https://example.com:6443", "team")
    assert await server.auth.token() == "secret"
    assert not server.auth.refused()


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    """A token that was refused is read anew; its path is relative to the kubeconfig."""
    (tmp_path / "token").write_text("one\n")
    server = from_kubeconfig([written(tmp_path, config(user={"tokenFile": "token"}))])
    assert await server.auth.token() == "one"
    (tmp_path / "token").write_text("two\n")
    assert await server.auth.token() == "one"
    assert server.auth.refused()
    assert await server.auth.token() == "two"


def test_a_client_certificate(tmp_path: Path) -> None:
    """A certificate may stand in the file or beside it."""
    assert from_kubeconfig([written(tmp_path, config(user=certificate_data()))]).tls is not None
    (tmp_path / "u.crt").write_bytes(CERTIFICATE.cert_chain_pems[0].bytes())
    (tmp_path / "u.key").write_bytes(CERTIFICATE.private_key_pem.bytes())
    beside = {"client-certificate": "u.crt", "client-key": "u.key"}
    assert from_kubeconfig([written(tmp_path, config(user=beside))]).tls is not None


def test_authorities(tmp_path: Path) -> None:
    """The server is checked against the authority given, or not at all where the file says so."""
    data = {"certificate-authority-data": encoded(AUTHORITY.cert_pem.bytes())}
    checked = from_kubeconfig([written(tmp_path, config(cluster=data))]).tls
    assert checked is not None
    assert checked.verify_mode == ssl.CERT_REQUIRED
    assert len(checked.get_ca_certs()) == 1
    unchecked = from_kubeconfig([written(tmp_path, config(cluster={"insecure-skip-tls-verify": True}))]).tls
    assert unchecked is not None
    assert unchecked.verify_mode == ssl.CERT_NONE


def program(folder: Path, answer: str, code: int = 0) -> str:
    """A credential program that writes down each call."""
    path = folder / "helper"
    path.write_text(f'#!/bin/sh\necho "$KUBERNETES_EXEC_INFO $1 $EXTRA" >> {folder}/calls\n{answer}\nexit {code}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def exec_user(command: str, **more: Any) -> dict[str, Any]:
    spec = {"apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": ["login"], **more}
    return {"exec": {**spec, "env": [{"name": "EXTRA", "value": "more"}]}}


async def test_an_exec_plugin(tmp_path: Path) -> None:
    """The program is called once, with what it needs, and again when the server refuses its token."""
    answer = (
        """echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}'"""
    )
    user = exec_user(program(tmp_path, answer), provideClusterInfo=True)
    server = from_kubeconfig([written(tmp_path, config(user=user))])
    assert [await server.auth.token(), await server.auth.token()] == ["t", "t"]
    (call,) = (tmp_path / "calls").read_text().splitlines()
    assert "login more" in call
    assert '"server":"https://example.com:6443/"' in call
    assert server.auth.refused()
    await server.auth.token()
    assert len((tmp_path / "calls").read_text().splitlines()) == 2


async def test_an_exec_credential_that_ends(tmp_path: Path) -> None:
    """A credential is fetched again when its time is up."""
    answer = """echo '{"status":{"token":"t","expirationTimestamp":"2020-01-01T00:00:00Z"}}'"""
    server = from_kubeconfig([written(tmp_path, config(user=exec_user(program(tmp_path, answer))))])
    await server.auth.token()
    await server.auth.token()
    assert len((tmp_path / "calls").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [("echo no >&2", 3, "exit code 3: no"), ("echo '{'", 0, "is no ExecCredential")],
)
async def test_an_exec_plugin_that_fails(tmp_path: Path, answer: str, code: int, message: str) -> None:
    """What the program says is passed on."""
    server = from_kubeconfig([written(tmp_path, config(user=exec_user(program(tmp_path, answer, code))))])
    with pytest.raises(ConfigError, match=message):
        await server.auth.token()


async def test_a_missing_exec_plugin(tmp_path: Path) -> None:
    """The hint of the kubeconfig says where to get it."""
    user = exec_user(str(tmp_path / "absent"), installHint="get it from the shop")
    server = from_kubeconfig([written(tmp_path, config(user=user))])
    with pytest.raises(ConfigError, match="get it from the shop"):
        await server.auth.token()


async def test_files_are_merged(tmp_path: Path) -> None:
    """Of several files the first to define something wins; a missing one does not count."""
    first = written(tmp_path, {"users": [{"name": "u", "user": {"token": "first"}}]}, "first")
    second = written(tmp_path, config(user={"token": "second"}), "second")
    paths = os.pathsep.join([str(tmp_path / "absent"), str(first), str(second)])
    server = find_server(environment={"KUBECONFIG": paths})
    assert await server.auth.token() == "first"
    assert server.url == "https://example.com:6443"


async def test_in_a_cluster(tmp_path: Path) -> None:
    """A pod finds its server in its environment and itself in its service account."""
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "namespace").write_text("team")
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.cert_pem.bytes())
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    server = in_cluster(environment, tmp_path)
    assert (server.url, server.namespace) == ("https://[fd00::1]:443", "team")
    assert await server.auth.token() == "pod-token"


BROKEN: list[tuple[str, Any, str]] = [
    ("not YAML", "{", "not YAML"),
    ("not a map", "- a", "is a list, not a map"),
    ("empty", "", "is empty, not a map"),
    ("no context", {"clusters": []}, "no current-context"),
    ("unknown context", {"current-context": "x"}, "no context named 'x' in contexts; there are: none"),
    ("unknown cluster", {**config(), "clusters": [{"name": "z"}]}, "no cluster named 'c' in clusters; there are: z"),
    ("unknown user", {**config(), "users": None}, "no user named 'u' in users; there are: none"),
    ("sections of the wrong kind", {**config(), "clusters": {"c": {}}}, "clusters is not a list of named entries"),
    ("no address", config(cluster={"server": "example.com"}), "not an http"),
    ("bad authority", config(cluster={"certificate-authority-data": "@@"}), "certificate-authority-data is not base64"),
    ("authority that is none", config(cluster={"certificate-authority-data": encoded(b"x")}), "not a PEM certificate"),
    ("missing file", config(cluster={"certificate-authority": "absent.crt"}), "absent.crt: No such file"),
    ("half a pair", config(user={"client-certificate-data": encoded(b"x")}), "both client-certificate and client-key"),
    ("damaged pair", config(user={**certificate_data(), "client-key-data": encoded(b"x")}), "damaged"),
    ("old provider", config(user={"auth-provider": {"name": "gcp"}}), "use an exec plugin"),
]


@pytest.mark.parametrize(("document", "message"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_a_broken_kubeconfig(tmp_path: Path, document: Any, message: str) -> None:
    """Each mistake is one line that says what is wrong where."""
    path = written(tmp_path, document)
    with pytest.raises(ConfigError, match=message) as caught:
        from_kubeconfig([path])
    assert "\n" not in str(caught.value)


def test_no_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is nothing at all, the message says what to do."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="--kubeconfig"):
        find_server(environment={})
    with pytest.raises(ConfigError, match="No such file"):
        find_server(str(tmp_path / "absent"))
