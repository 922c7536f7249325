"""Find the API server and our credentials: from a kubeconfig, or in a pod."""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinney.api.meta import Json
from spinney.api.yaml_reader import YamlError, read_yaml
from spinney.kube.client.credentials import Auth, ConfigError, ExecCredentials, FileToken, StaticToken, load_certificate

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class Server:
    """One API server as one user."""

    url: str
    auth: Auth
    tls: ssl.SSLContext | None = None
    namespace: str = "default"
    # Checked against the server's certificate instead of the URL's host.
    tls_name: str = ""
    proxy: str = ""
    source: str = ""


def find_server(kubeconfig: str = "", context: str = "", environment: Mapping[str, str] = os.environ) -> Server:
    """The API server of the given kubeconfig, else of $KUBECONFIG, else ~/.kube/config, else the pod's own."""
    if kubeconfig:
        return from_kubeconfig([Path(kubeconfig)], context)
    paths = [Path(name) for name in environment.get("KUBECONFIG", "").split(os.pathsep) if name]
    # As kubectl does: of several files in $KUBECONFIG those that are missing do not count.
    present = [path for path in paths if path.exists()]
    if paths:
        return from_kubeconfig(present or paths, context)
    home = Path.home() / ".kube" / "config"
    if home.exists():
        return from_kubeconfig([home], context)
    if environment.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environment)
    raise ConfigError(f"no API server: name a file with --kubeconfig, set KUBECONFIG, or write {home}")


def in_cluster(environment: Mapping[str, str] = os.environ, account: Path = _ACCOUNT) -> Server:
    """The API server of the cluster that this pod runs in, as the pod's service account."""
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (account / "token").exists():
        raise ConfigError("not in a cluster: KUBERNETES_SERVICE_HOST or the service account's token is missing")
    host = f"[{host}]" if ":" in host else host
    namespace = (account / "namespace").read_text().strip()
    tls = ssl.create_default_context(cafile=str(account / "ca.crt"))
    return Server(f"https://{host}:{port}", FileToken(account / "token"), tls, namespace, source=str(account))


def from_kubeconfig(paths: list[Path], context: str = "") -> Server:
    """The server and user of a context; of several files the first to define a name wins."""
    documents = [(_load(path), path) for path in paths]
    source = os.pathsep.join(map(str, paths))
    chosen = context or next((d["current-context"] for d, _ in documents if d.get("current-context")), "")
    if not chosen:
        raise ConfigError(f"{source}: no current-context; set one or pass --context")
    entry, _ = _named(documents, "contexts", "context", str(chosen), source)
    cluster, cluster_at = _named(documents, "clusters", "cluster", str(entry.get("cluster", "")), source)
    user: Json = {}
    user_at = cluster_at
    if entry.get("user"):
        user, user_at = _named(documents, "users", "user", str(entry["user"]), source)
    url = str(cluster.get("server", "")).rstrip("/")
    if not url.startswith(("https://", "http://")):
        raise ConfigError(f"{source}: cluster {entry['cluster']!r}: server is {url!r}, not an http(s) address")
    tls = _tls(cluster, cluster_at.parent) if url.startswith("https://") else None
    return Server(
        url=url,
        auth=_auth(user, user_at.parent, cluster, tls),
        tls=tls,
        namespace=str(entry.get("namespace") or "default"),
        tls_name=str(cluster.get("tls-server-name", "")),
        proxy=str(cluster.get("proxy-url", "")),
        source=source,
    )


def _load(path: Path) -> Json:
    try:
        document = read_yaml(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"kubeconfig {path}: {error.strerror}") from error
    except YamlError as error:
        raise ConfigError(f"kubeconfig {path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"kubeconfig {path}: is {_kind(document)}, not a map with clusters, users and contexts")
    return document


def _named(documents: list[tuple[Json, Path]], section: str, member: str, name: str, source: str) -> tuple[Json, Path]:
    names = []
    for document, path in documents:
        entries = document.get(section) or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ConfigError(f"kubeconfig {path}: {section} is not a list of named entries")
        for entry in entries:
            names.append(str(entry.get("name", "")))
            if entry.get("name") == name:
                value = entry.get(member) or {}
                if not isinstance(value, dict):
                    raise ConfigError(f"kubeconfig {path}: {section} {name!r}: {member} is {_kind(value)}, not a map")
                return value, path
    raise ConfigError(f"{source}: no {member} named {name!r} in {section}; there are: {', '.join(names) or 'none'}")


def _kind(value: Any) -> str:
    return "empty" if value is None else f"a {type(value).__name__}"


def _tls(cluster: Json, folder: Path) -> ssl.SSLContext:
    authority = _text(cluster, "certificate-authority", folder)
    try:
        tls = ssl.create_default_context(cadata=authority or None)
    except ssl.SSLError as error:
        raise ConfigError(f"certificate-authority: not a PEM certificate: {error.reason or error}") from error
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return tls


def _auth(user: Json, folder: Path, cluster: Json, tls: ssl.SSLContext | None) -> Auth:
    certificate = _text(user, "client-certificate", folder)
    key = _text(user, "client-key", folder)
    if bool(certificate) != bool(key):
        raise ConfigError("a user needs both client-certificate and client-key, or neither")
    if certificate and tls is not None:
        load_certificate(tls, certificate, key)
    # kubectl's order: a token file is looked at before a token, since it stays fresh.
    if user.get("tokenFile"):
        return FileToken(folder / str(user["tokenFile"]))
    if user.get("token"):
        return StaticToken(str(user["token"]))
    if user.get("exec"):
        shown = {
            "server": cluster.get("server", ""),
            "certificate-authority-data": cluster.get("certificate-authority-data", ""),
        }
        return ExecCredentials(user["exec"], shown, tls)
    if user.get("auth-provider"):
        raise ConfigError("users[].user.auth-provider is gone from Kubernetes since 1.26: use an exec plugin")
    return StaticToken()


def _text(entry: Json, name: str, folder: Path) -> str:
    """What `name-data` holds, or else the file that `name` points to."""
    data = entry.get(f"{name}-data")
    if data:
        try:
            return base64.b64decode(str(data), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ConfigError(f"{name}-data is not base64 of PEM text") from error
    if not entry.get(name):
        return ""
    path = folder / str(entry[name])
    try:
        return path.read_text()
    except OSError as error:
        raise ConfigError(f"{name} {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} {path}: not PEM text") from error
