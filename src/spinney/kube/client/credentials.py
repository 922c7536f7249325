"""Credentials for an API server: a bearer token from a file or a program, or a client certificate."""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import msgspec

from spinney.api.meta import Json, Struct
from spinney.kube.clock import Clock, SystemClock

# A token is asked for again this long before it ends; clocks of two machines differ.
_EARLY = timedelta(seconds=60)
# The kubelet replaces projected tokens in place.
_FILE_IS_FRESH = timedelta(seconds=60)


class ConfigError(Exception):
    """The kubeconfig or environment does not describe an API server; the message says what to change."""


class Auth(Protocol):
    """Provides the bearer token of a request."""

    async def token(self) -> str:
        """The token; empty if a client certificate is used."""

    def refused(self) -> bool:
        """Forget a cached token after 401; True if a retry may help."""


@dataclass(frozen=True)
class StaticToken:
    """A token that never changes; empty for none."""

    value: str = ""

    async def token(self) -> str:
        """The token."""
        return self.value

    def refused(self) -> bool:
        """It does not change."""
        return False


@dataclass
class FileToken:
    """A token in a file that someone else keeps fresh."""

    path: Path
    clock: Clock = field(default_factory=SystemClock)
    _value: str = ""
    _read_at: datetime | None = None

    async def token(self) -> str:
        """The token, read again once a minute."""
        now = self.clock.now()
        if self._read_at is None or now - self._read_at > _FILE_IS_FRESH:
            try:
                self._value = self.path.read_text().strip()
            except OSError as error:
                raise ConfigError(f"token file {self.path}: {error.strerror}") from error
            self._read_at = now
        return self._value

    def refused(self) -> bool:
        """Read the file again."""
        self._read_at = None
        return True


class _ExecStatus(Struct, frozen=True):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus = _ExecStatus()


class ExecCredentials:
    """Credentials from a program (`users[].user.exec` of a kubeconfig), renewed when they expire."""

    def __init__(self, spec: Json, cluster: Json, tls: ssl.SSLContext | None) -> None:
        self._command = str(spec.get("command", ""))
        if not self._command:
            raise ConfigError("users[].user.exec.command is empty: name the program that hands out credentials")
        self._arguments = [str(argument) for argument in spec.get("args") or ()]
        self._environment = {str(entry["name"]): str(entry["value"]) for entry in spec.get("env") or ()}
        self._api_version = str(spec.get("apiVersion") or "client.authentication.k8s.io/v1")
        self._hint = str(spec.get("installHint", ""))
        self._cluster = cluster if spec.get("provideClusterInfo") else None
        self._tls = tls
        self._clock = SystemClock()
        self._held: _ExecStatus | None = None
        self._asking = asyncio.Lock()

    async def token(self) -> str:
        """The token; the program runs again when the last one has expired."""
        async with self._asking:
            if self._held is None or self._runs_out(self._held):
                self._held = await self._ask()
                if self._held.client_certificate_data and self._tls is not None:
                    load_certificate(self._tls, self._held.client_certificate_data, self._held.client_key_data)
            return self._held.token

    def refused(self) -> bool:
        """Run the program again next time."""
        self._held = None
        return True

    def _runs_out(self, held: _ExecStatus) -> bool:
        return held.expiration_timestamp is not None and self._clock.now() > held.expiration_timestamp - _EARLY

    async def _ask(self) -> _ExecStatus:
        info: Json = {"apiVersion": self._api_version, "kind": "ExecCredential", "spec": {"interactive": False}}
        if self._cluster is not None:
            info["spec"]["cluster"] = self._cluster
        environment = {**os.environ, **self._environment, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        answer = await _run(self._command, self._arguments, environment, self._hint)
        try:
            return msgspec.json.decode(answer, type=_ExecCredential).status
        except msgspec.DecodeError as error:
            raise ConfigError(
                f"credential program {self._command}: its answer is no ExecCredential: {error}"
            ) from error


async def _run(command: str, arguments: list[str], environment: Mapping[str, str], hint: str) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *arguments,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise ConfigError(f"credential program {command}: {error.strerror}. {hint}".strip()) from error
    try:
        answer, complaint = await asyncio.wait_for(process.communicate(), 60)
    except TimeoutError as error:
        process.kill()
        raise ConfigError(f"credential program {command}: no answer within 60 s") from error
    if process.returncode:
        output = complaint.decode(errors="replace").strip().splitlines()
        last = output[-1] if output else "it printed nothing"
        raise ConfigError(f"credential program {command}: exit code {process.returncode}: {last}")
    return answer


def load_certificate(tls: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load a certificate and key into a TLS context, through a temporary file: ssl reads only files."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(certificate.rstrip() + "\n" + key)
        file.flush()
        try:
            tls.load_cert_chain(file.name)
        except ssl.SSLError as error:
            raise ConfigError(f"client certificate and key do not fit together or are damaged: {error}") from error
