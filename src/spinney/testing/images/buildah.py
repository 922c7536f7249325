"""Buildah with a store of its own in the cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spinney.testing.golang import Unavailable, cache_folder

_PROGRAMS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap"}


def check() -> None:
    """Say in one line what is missing for building images here."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise Unavailable("images are built as root on Linux; elsewhere use `docker build -f deploy/Dockerfile .`")
    missing = sorted(package for program, package in _PROGRAMS.items() if shutil.which(program) is None)
    if missing:
        raise Unavailable(f"images need these Debian packages: apt-get install {' '.join(missing)}")


def buildah(*arguments: str) -> str:
    """Run one command of buildah and return what it prints."""
    store = cache_folder() / "buildah"
    command = ["buildah", "--root", str(store), "--runroot", str(store / "run"), *arguments]
    # What is configured on the machine stays out of the image; chroot needs neither a runtime nor cgroups.
    env = {**os.environ, "BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "overlay"}
    done = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Unavailable(f"buildah {arguments[0]} failed: " + " | ".join(said[-8:]))
    return done.stdout.strip()


def exists(name: str) -> bool:
    """Whether an image is in the store."""
    return bool(buildah("images", "--quiet", "--filter", f"reference={name}"))


def size(name: str) -> int:
    """The size of an image in bytes, its base included."""
    with mounted(name) as root:
        return sum(path.lstat().st_size for path in root.rglob("*") if not path.is_dir())


@contextmanager
def container(image: str) -> Iterator[str]:
    """A working container made from an image, removed at the end."""
    name = buildah("from", "--pull-never", image)
    try:
        yield name
    finally:
        buildah("rm", name)


@contextmanager
def mounted(image: str) -> Iterator[Path]:
    """The file system of an image."""
    with container(image) as name:
        path = Path(buildah("mount", name))
        try:
            yield path
        finally:
            buildah("umount", name)


def save(image: str, archive: Path, name: str) -> None:
    """Write an image into one file that every container runtime can import, under a name."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.unlink(missing_ok=True)
    buildah("push", "--quiet", image, f"oci-archive:{archive}:{name}")
