"""The guide to installing, typed by a reader of it on the real cluster."""

from __future__ import annotations

from pathlib import Path

from spinney.testing.cluster import programs
from tests.docs.commands import ROOT, Command, read
from tests.docs.shell import Shell

PAGE = ROOT / "docs" / "users" / "install.md"


class Guide:
    """The commands of the page, and a shell to type them in."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self._shell = Shell(folder, programs.helm())
        self._shell.use(kubeconfig)
        self._commands = read(PAGE).commands

    def five_commands(self) -> list[Command]:
        """Those that install, and run a first gang."""
        return self._commands[:5]

    def command(self, beginning: str) -> str:
        """The one command of the page that begins so."""
        (command,) = {each.text for each in self._commands if each.text.startswith(beginning)}
        return command

    def follow(self, beginning: str) -> str:
        """Type the one command of the page that begins so."""
        return self.type(self.command(beginning))

    def type(self, text: str) -> str:
        """Type a command, which must succeed, and return what it prints."""
        done = self._shell.once(text)
        assert done.code == 0, f"$ {text}\n{done.out}"
        return done.out
