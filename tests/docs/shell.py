"""Runs the commands of a page as a reader does: in a checkout, one after the other, with what they export."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from tests.docs import warm
from tests.docs.commands import ROOT, Command
from tests.docs.comparing import agrees
from tests.worlds import Ran, kubectl

# A reader looks again while a cluster is still at work; far above what anything takes on a busy machine.
PATIENCE = 180.0
# These only read, so they may be asked again.
_READING = ("kubectl get", "kubectl describe", "kubectl top", "spinney")
_CHANGING = ("spinney queue ", "spinney suspend", "spinney resume", "spinney restart", "spinney undo", "spinney nodes")
# A call of `spinney` alone, without anything for a shell to do.
_PLAIN = re.compile(r"spinney [^|&;<>$`*]*")
# The last line that `spinney up` prints.
_LAST = "dashboard at "


class Mismatch(AssertionError):
    """A command failed, or printed something else than its page shows."""


class Shell:
    """A folder that looks like a checkout, and what the commands before have exported."""

    def __init__(self, folder: Path, *programs: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[str]] = []
        for entry in ROOT.iterdir():
            if entry.name not in {".spinney", ".venv"}:
                (folder / entry.name).symlink_to(entry)
        (folder / ".venv").symlink_to(sys.prefix)
        own = folder / ".programs"
        own.mkdir()
        for program in (Path(kubectl()), *programs):
            (own / program.name).symlink_to(program)
        path = f"{own}:{folder / '.venv' / 'bin'}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "KUBECACHEDIR": str(folder / ".cache"), "COLUMNS": "200"}
        self._environment.pop("KUBECONFIG", None)

    def use(self, kubeconfig: Path) -> None:
        """Let the commands talk to this cluster."""
        self._environment["KUBECONFIG"] = str(kubeconfig)

    def run(self, command: Command) -> None:
        """Run a command; what only reads is asked again until it agrees with the page."""
        if starts_cluster(command.text):
            printed = self.start(command)
            if not agrees(command.output or "", printed):
                raise Mismatch(f"line {command.line}: $ {command.text}\n{printed}\nis not\n{command.output}")
            return
        deadline = time.monotonic() + PATIENCE
        while True:
            done = self.once(command.text)
            right = done.code == 0 if command.output is None else agrees(command.output, done.out)
            if right:
                return
            if not _reads(command.text) or time.monotonic() > deadline:
                raise Mismatch(f"line {command.line}: $ {command.text}\n{done.out}\nis not\n{command.output}")
            time.sleep(0.2)

    def once(self, text: str) -> Ran:
        """Run a command with what the ones before exported; both of its outputs come back as one."""
        if _PLAIN.fullmatch(_program(text)):
            arguments = shlex.split(_program(text))[1:]
            code, out = warm.run(arguments, self.folder, self._environment, 2 * PATIENCE)
            return Ran(code, out, "")
        exported = self.folder / ".exported"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", f"{text}\ncode=$?; env -0 >{exported}; exit $code"],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
        )
        self._environment = dict(line.split("=", 1) for line in exported.read_text().split("\0") if line)
        return Ran(done.returncode, done.stdout, "")

    def start(self, command: Command) -> str:
        """Start a cluster in the background, on free ports, and return what it prints until it is ready."""
        text = f"exec {command.text} --port 0 --dashboard-port 0"
        process = subprocess.Popen(
            ["bash", "-c", text],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._started.append(process)
        assert process.stdout is not None
        printed = ""
        for line in process.stdout:
            printed += line
            if line.startswith(_LAST):
                break
        Thread(target=process.stdout.read, daemon=True).start()
        return printed

    def close(self) -> None:
        """Stop what was started."""
        for process in self._started:
            process.kill()
            process.wait()


@contextmanager
def shell(folder: Path) -> Iterator[Shell]:
    """A shell that stops what it started."""
    opened = Shell(folder)
    try:
        yield opened
    finally:
        opened.close()


def run_all(opened: Shell, commands: Sequence[Command]) -> None:
    """Run commands in order."""
    for command in commands:
        opened.run(command)


def starts_cluster(text: str) -> bool:
    """Whether a command runs a cluster until Ctrl-C."""
    return _program(text).startswith("spinney up")


def _program(text: str) -> str:
    return text.removeprefix(".venv/bin/")


def _reads(text: str) -> bool:
    program = _program(text)
    return program.startswith(_READING) and not program.startswith(_CHANGING)
