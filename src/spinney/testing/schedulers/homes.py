"""Where a scheduler's programs, CRDs and shipped configuration are on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from spinney.api.meta import Json
from spinney.testing.golang import Unavailable
from spinney.testing.schedulers import build, kai
from spinney.testing.schedulers.sources import SOURCES


@dataclass(frozen=True)
class Home:
    """One scheduler's files: programs by name, and the folders of its CRDs and of what it is configured with."""

    programs: Mapping[str, Path]
    crds: Path
    config: Path

    def definitions(self) -> list[Json]:
        """Its CustomResourceDefinitions."""
        documents = (yaml.safe_load_all(path.read_text()) for path in sorted(self.crds.glob("*.yaml")))
        return [document for file in documents for document in file if document]


def home(name: str) -> Home:
    """The files of a scheduler, built first if it is one of those that can be."""
    if name == "kai":
        folder = kai.checkout()
        return Home({program: kai.program(folder, program) for program in kai.PROGRAMS}, kai.crds(folder), folder)
    folder = build.ensure(name)
    return Home({program: folder / program for program in SOURCES[name].programs}, folder / "crds", folder / "config")


def lacking(name: str) -> str:
    """Why a scheduler cannot run here now, and what to do; empty if it can."""
    if name != "kai":
        return "" if build.built(name) else f"{name} is not built: run `make schedulers`"
    try:
        kai.checkout()
    except Unavailable as error:
        return str(error)
    return ""
