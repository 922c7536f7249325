"""What README, quick start, tutorials and pages for newcomers tell a reader to type prints what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.testing import build
from spinney.testing.controlplane import ControlPlane
from tests import data
from tests.docs.commands import ROOT, read
from tests.docs.comparing import agrees
from tests.docs.real import real_cluster
from tests.docs.shell import run_all, shell

# A busy machine takes its time over so many programs.
pytestmark = pytest.mark.timeout(1200)

PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "users" / "quickstart.md",
    *sorted((ROOT / "docs" / "users" / "tutorials").glob("*.md")),
    *sorted((ROOT / "docs" / "users" / "coming-from").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_prints_what_its_page_shows(page: Path, tmp_path: Path) -> None:
    """A reader who follows the page on a laptop sees what is written there."""
    with shell(tmp_path) as opened:
        run_all(opened, read(page).commands)


@pytest.mark.real
def test_marked_commands_print_the_same_on_a_real_api_server(tmp_path: Path) -> None:
    """Blocks marked so work on a cluster with Spinney as they do on a laptop."""
    if not build.built():
        data.unavailable("real", "the real control plane is not built: run `make controlplane`")
    with ControlPlane(tmp_path / "plane") as plane:
        plane.start_controllers()
        with real_cluster(plane, tmp_path) as cluster:
            for page in map(read, PAGES):
                marked = [command for command in page.commands if command.real]
                if marked:
                    folder = tmp_path / page.path.stem
                    folder.mkdir()
                    with cluster.nodes_of(page), shell(folder) as opened:
                        opened.use(cluster.kubeconfig)
                        run_all(opened, marked)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_that_are_run_elsewhere_say_where(page: Path) -> None:
    """A block that is not run here names the file of the checkout that runs it."""
    for place in read(page).elsewhere:
        assert (ROOT / place).is_file(), place


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a   b 3s", "a b 17m", True),
        ("pod-x7k2q Running", "pod-bbbbb Running", True),
        ("pod-x7k2q Running", "pod-bbbbb Pending", False),
        ("one … three", "one\ntwo\nthree", True),
        ("one … three", "one two four", False),
        ("one", "one two", False),
    ],
)
def test_comparing(shown: str, printed: str, same: bool) -> None:
    """Ages and generated names may differ, and `…` stands for any text; every other word counts."""
    assert agrees(shown, printed) is same
