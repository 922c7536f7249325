"""Spinney's own image from this checkout: `make image` writes it and its parts list into dist/."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spinney.api.image import REPOSITORY
from spinney.testing.golang import Unavailable, cache_folder
from spinney.testing.images import base
from spinney.testing.images.buildah import buildah, check, mounted, save
from spinney.testing.images.sbom import Subject, bill_of_materials, image_of

_CHECKOUT = Path(__file__).resolve().parents[4]


def cached_archives() -> Path:
    """Where archives of this checkout's images are kept for clusters; another checkout has another folder."""
    return cache_folder() / "images" / hashlib.sha256(str(_CHECKOUT).encode()).hexdigest()[:12]


def version() -> str:
    """The version of the package in this checkout."""
    project = _CHECKOUT / "pyproject.toml"
    if not (_CHECKOUT / "deploy" / "Dockerfile").exists():
        raise Unavailable(f"the image is built from a checkout, and {_CHECKOUT} is none")
    return str(tomllib.loads(project.read_text())["project"]["version"])


def build_image(tag: str = "") -> str:
    """Build the image of this checkout and return its identity; unchanged layers are taken from the last build."""
    check()
    tag = tag or version()
    with ThreadPoolExecutor() as threads:
        bases = list(threads.map(lambda make: make(), (base.base_image, base.build_image)))
    downloads = cache_folder() / "pip"
    downloads.mkdir(parents=True, exist_ok=True)
    printed = buildah(
        "bud",
        "--layers",
        "--pull-never",
        "--file=deploy/Dockerfile",
        f"--ignorefile={_CHECKOUT / 'deploy' / 'Dockerfile.dockerignore'}",
        f"--build-arg=BASE={bases[0]}",
        f"--build-arg=BUILD_BASE={bases[1]}",
        f"--build-arg=VERSION={tag}",
        f"--build-arg=REVISION={_revision()}",
        # Behind a proxy that signs for others, downloads need the machine's certificates.
        "--volume=/etc/ssl/certs:/etc/ssl/certs:ro",
        f"--volume={downloads}:/root/.cache/pip",
        f"--tag={REPOSITORY}:{tag}",
        str(_CHECKOUT),
    )
    # The last line; what comes before it are the steps. A name may be another checkout's by now.
    return printed.splitlines()[-1]


def write_image(folder: Path) -> tuple[Path, Path]:
    """Build the image; write its archive and its parts list into a folder."""
    tag = version()
    identity = build_image(tag)
    archive, parts = folder / f"spinney-{tag}.oci.tar", folder / f"spinney-{tag}.cdx.json"
    if archive.exists() and parts.exists() and image_of(json.loads(parts.read_text())) == identity:
        return archive, parts
    parts.unlink(missing_ok=True)
    save(identity, archive, f"{REPOSITORY}:{tag}")
    with mounted(identity) as root:
        subject = Subject(REPOSITORY, tag, identity)
        parts.write_text(json.dumps(bill_of_materials(root, subject), indent=2) + "\n")
    return archive, parts


def _revision() -> str:
    command = ["git", "-C", str(_CHECKOUT), "rev-parse", "HEAD"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
