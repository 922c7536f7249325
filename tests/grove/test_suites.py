"""Every suite of upstream's end-to-end tests has a test here that names it, and a third run on a real API server too.

Where the operator does not decide, the module that holds a suite says so: which nodes a gang gets is the scheduler's
business (`test_topology_groups`), and who issues certificates is cert-manager's (`test_certificates`).
"""

from __future__ import annotations

import re
from pathlib import Path

SUITES = {
    **{f"GS{number}": "gang scheduling" for number in range(1, 13)},
    **{f"GT{number}": "gang termination" for number in range(1, 7)},
    **{f"SO{number}": "start-up order" for number in range(1, 5)},
    **{f"RU{number}": "rolling updates" for number in range(7, 22)},
    **{f"OD{number}": "OnDelete updates" for number in range(1, 10)},
    **{f"TAS{number}": "topology" for number in range(1, 24)},
    **dict.fromkeys(("RS1", "CM1", "CascadeDelete", "MNNVL", "Upgrade"), "others"),
}
# The arguments of a test, and the suites that its docstring begins with.
_TEST = re.compile(r'^(?:async )?def test_\w+\(([^)]*)\) -> None:\n    """([A-Za-z]\w*(?:[–,] ?\w+)*): ', re.MULTILINE)
# What a test asks for that runs on both worlds.
_BOTH = ("both: ", "cluster: ")


def named() -> dict[str, bool]:
    """Every suite that a test names, and whether it runs on a real API server."""
    suites: dict[str, bool] = {}
    for path in Path(__file__).parent.rglob("test_*.py"):
        for arguments, names in _TEST.findall(path.read_text()):
            for name in names.split(", "):
                for suite in _range(name):
                    suites[suite] = suites.get(suite, False) or arguments.lstrip().startswith(_BOTH)
    return suites


def _range(name: str) -> list[str]:
    """`A1–A3` names three suites."""
    first, _, last = name.partition("–")
    if not last:
        return [first]
    letters = first.rstrip("0123456789")
    return [f"{letters}{number}" for number in range(int(first[len(letters) :]), int(last[len(letters) :]) + 1)]


def test_every_suite_has_its_test() -> None:
    """No suite of upstream's is forgotten."""
    assert not SUITES.keys() - named().keys()


def test_a_third_of_the_suites_runs_on_a_real_api_server() -> None:
    """On the real API server run a third of the suites at least, some of every kind."""
    real = {name for name, on_both in named().items() if on_both and name in SUITES}
    assert 3 * len(real) >= len(SUITES), sorted(real)
    assert {SUITES[name] for name in real} == set(SUITES.values())
