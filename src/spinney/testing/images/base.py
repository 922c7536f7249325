"""The base image where no registry is at hand: a small Debian with Python, made once by mmdebstrap."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from spinney.testing.golang import Unavailable, cache_folder
from spinney.testing.images.buildah import buildah, container, exists

_SUITE = "bookworm"
_PACKAGES = ("ca-certificates", "libstdc++6", "python3")
_BUILD_PACKAGES = (*_PACKAGES, "binutils", "python3-venv")
# Without apt, manuals and translations: nobody works inside a container of ours.
_OPTIONS = (
    "--quiet",
    "--variant=essential",
    *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("doc", "info", "locale", "man")),
)


def base_image() -> str:
    """The name of the image that ours stands on, made first where it is not there yet."""
    return _image(_PACKAGES)


def build_image() -> str:
    """The name of the image in which ours is built."""
    return _image(_BUILD_PACKAGES)


def _image(packages: tuple[str, ...]) -> str:
    options = (*_OPTIONS, f"--include={','.join(packages)}")
    recipe = hashlib.sha256("\n".join((_SUITE, *options)).encode()).hexdigest()[:12]
    name = f"localhost/spinney-base:{recipe}"
    if exists(name):
        return name
    archive = cache_folder() / "base" / f"{recipe}.tar"
    if not archive.exists():
        _bootstrap(archive, options)
    with container("scratch") as made:
        buildah("add", "--quiet", made, str(archive), "/")
        buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", "--cmd", "python3", made)
        buildah("commit", "--quiet", made, name)
    return name


def _bootstrap(archive: Path, options: tuple[str, ...]) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        made = Path(scratch) / "base.tar"
        command = ["mmdebstrap", *options, _SUITE, str(made)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable("mmdebstrap failed: " + " | ".join(done.stderr.strip().splitlines()[-5:]))
        made.rename(archive)
