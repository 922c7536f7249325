"""What a new user meets first: help, a folder in use, a broken file, names that are taken."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.api.core import Node
from spinney.cli.ask.ls import narrowed
from spinney.cli.main import main
from spinney.cli.nodes import registered
from spinney.cli.up import nodes_kept
from spinney.embedded.apiserver.store.journal import DataError, SqliteJournal
from spinney.embedded.nodes.profile import Profile
from spinney.testing import golang
from tests import make


def test_a_narrow_terminal_shows_why() -> None:
    """At 80 columns the table was cut before its last column, which is the one to read."""
    header = ("WORKLOAD", "QUEUE", "PRIORITY", "PODS", "GPUS", "PHASE", "AGE", "LINE", "START", "WHY")
    row = ("job/waits", "default-queue", "50", "0/3/3", "24", "Waiting", "2m", "1", "in 7m", "4 nodes lack free GPUs.")
    assert narrowed([header, row], 200) == [header, row]
    assert narrowed([header, row], 80)[0] == ("WORKLOAD", "QUEUE", "PODS", "GPUS", "PHASE", "WHY")
    assert narrowed([header, row], 110)[0] == tuple(each for each in header if each not in ("PRIORITY", "AGE"))


def test_bare_spinney_prints_its_help() -> None:
    """As a page of lines, not as an error."""
    result = CliRunner().invoke(main, [])
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) > 20
    assert "Commands:" in result.stdout


def test_a_reader_that_has_enough_ends_a_command_quietly() -> None:
    """No "Broken pipe", no traceback: `spinney crds | head` ends as any program does."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "spinney.cli", "crds"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_restart_with_other_nodes_says_which_stay() -> None:
    """Nodes of a data folder are kept; what was asked for and is not there is told."""
    kept = [make.node(f"node-0{number}").typed(Node) for number in range(3)]
    like_these = Profile(count=2, racks=1, cpu="64", memory="512Gi")
    note = nodes_kept(kept, like_these)
    assert note == "1 nodes of an earlier start stay beside the 2 asked for: node-02 (spinney nodes remove NAME)"
    assert nodes_kept(kept[:2], Profile(count=2, racks=1, gpus=4)).startswith("2 nodes of an earlier start have other")
    assert nodes_kept(kept[:2], like_these) == ""


def test_a_folder_in_use_is_one_line(tmp_path: Path) -> None:
    """The error says what to do, without a traceback."""
    holder = sqlite3.connect(tmp_path / "cluster.db")
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    command = ["up", "--bare", "--nodes", "0", "--port", "0", "--data-dir", str(tmp_path)]
    result = CliRunner().invoke(main, [*command, "--kubeconfig", str(tmp_path / "kubeconfig")])
    holder.close()
    assert result.exit_code == 1
    assert result.stderr.startswith("spinney: ")
    assert "is another process running on this folder?" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_port_in_use_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    """Another cluster listens there already: no number of an error, but the way out."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = ["up", "--bare", "--nodes", "0", "--port", str(port), "--kubeconfig", str(tmp_path / "kubeconfig")]
        result = CliRunner().invoke(main, command)
    assert result.exit_code == 1
    assert result.stderr == (
        f"spinney: something else listens on port {port} of 127.0.0.1 already: "
        "end it, or choose another port (--port 0 picks a free one)\n"
    )


def test_a_file_that_cannot_be_written_is_named_first(tmp_path: Path) -> None:
    """As other programs do, without the number of the error."""
    place = tmp_path / "file" / "kubeconfig"
    place.parent.write_text("")
    result = CliRunner().invoke(main, ["up", "--bare", "--nodes", "0", "--port", "0", "--kubeconfig", str(place)])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"spinney: {place.parent}")
    assert "Errno" not in result.stderr


def test_a_broken_database_is_one_line(tmp_path: Path) -> None:
    """A file that is no database says so."""
    (tmp_path / "cluster.db").write_text("hello, this is no database at all, whatever its name says")
    with pytest.raises(DataError, match="not a data folder of this program"):
        SqliteJournal(tmp_path / "cluster.db")


def test_nodes_that_exist_already_are_not_called_registered() -> None:
    """Beside `up` all names are taken: nothing was added, and that is what is said."""
    assert registered(4, 4) == "4 nodes registered"
    assert registered(0, 64).startswith("0 nodes registered; 64 of the names exist already")


def test_go_leaves_nothing_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a module cache of the user's own, modules and checksums go to our cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(golang, "_ask", lambda go, name: str(tmp_path / "home" / "go" / "pkg" / "mod"))
    env = golang.environment("go")
    assert env["GOMODCACHE"].startswith(str(tmp_path / "cache"))
    assert env["GOPATH"].startswith(str(tmp_path / "cache"))
