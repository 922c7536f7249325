"""Builds other projects' schedulers from their Go modules, once per version, with their CRDs and configuration.

`python -m spinney.testing.schedulers.build [volcano …]` prints the folders that hold them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from spinney.testing.golang import Unavailable, cache_folder
from spinney.testing.gomodules import Toolchain, build_once, toolchain, write_module
from spinney.testing.schedulers.sources import (
    KUBERNETES,
    REPLACEMENTS,
    SOURCES,
    VOLCANO_APIS,
    VOLCANO_APIS_ADDED,
    WITHOUT_SUM,
)


def folder(name: str) -> Path:
    """Where a scheduler is, or will be: its programs, and its files in `crds` and `config`."""
    return cache_folder() / "schedulers" / name / SOURCES[name].version


def built(name: str) -> bool:
    """Whether a scheduler is built."""
    return all((folder(name) / program).exists() for program in SOURCES[name].programs)


def ensure(name: str) -> Path:
    """The folder of a scheduler, built first where it is not there yet."""
    if name not in SOURCES:
        raise Unavailable(f"scheduler {name!r} is not one of {', '.join(SOURCES)}")
    return build_once(folder(name), lambda: built(name), lambda *folders: _build(name, *folders))


def _build(name: str, scratch: Path, output: Path) -> None:
    go = toolchain(WITHOUT_SUM)
    module = scratch / "wrapper"
    _write_wrapper(go, module, scratch)
    source = SOURCES[name]
    for program, package in source.programs.items():
        go.build(module, output / program, [f"{source.module}/{package}"])
    root = go.source(module, source.module)
    for target, patterns in source.files.items():
        (output / target).mkdir()
        for path in (path for pattern in patterns for path in sorted(root.glob(pattern))):
            shutil.copyfile(path, output / target / path.name)


def _write_wrapper(go: Toolchain, module: Path, scratch: Path) -> None:
    """One wrapper for all of them, whichever is built: packages that they share are compiled once."""
    kubernetes = go.kubernetes_replacements(module, KUBERNETES)
    apis = _volcano_apis(go, scratch)
    requires = {source.module: source.version for source in SOURCES.values()}
    write_module(module, requires, {**kubernetes, **REPLACEMENTS}, {VOLCANO_APIS[0]: apis})


def _volcano_apis(go: Toolchain, scratch: Path) -> Path:
    """A copy of Volcano's API types with what its scheduler needs of later ones."""
    name, version = VOLCANO_APIS
    write_module(scratch / "apis-wrapper", {name: version})
    copy = scratch / "volcano-apis"
    # The module cache is read-only, and so would be a copy with its permissions.
    shutil.copytree(go.source(scratch / "apis-wrapper", name), copy, copy_function=shutil.copyfile)
    for added, text in VOLCANO_APIS_ADDED.items():
        (copy / added).parent.chmod(0o755)
        (copy / added).write_text(text)
    return copy


def main(arguments: list[str]) -> int:
    """The command line: build some schedulers, or all, and say where they are."""
    for name in arguments or SOURCES:
        if name in SOURCES and not built(name):
            print(f"building {name} {SOURCES[name].version}; this takes some minutes, once", file=sys.stderr)
        try:
            print(ensure(name))
        except Unavailable as error:
            print(f"no {name}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
