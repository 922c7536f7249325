"""The parts list of an image, in CycloneDX form: its Python distributions and Debian packages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from urllib.parse import quote

from spinney.api.meta import Json

_IDENTITY = "oci:image:id"
_DPKG_STATUS = "var/lib/dpkg/status"


@dataclass(frozen=True)
class Subject:
    """The image that a parts list is about."""

    name: str
    version: str
    identity: str


def bill_of_materials(root: Path, subject: Subject) -> Json:
    """The CycloneDX document of the file system of an image."""
    parts = sorted((*_distributions(root), *_packages(root)), key=lambda part: str(part["bom-ref"]))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _container(subject)},
        "components": parts,
    }


def image_of(document: Json) -> str:
    """The identity of the image that a parts list is about."""
    properties = document["metadata"]["component"].get("properties", ())
    return next((str(entry["value"]) for entry in properties if entry["name"] == _IDENTITY), "")


def _container(subject: Subject) -> Json:
    return {
        "type": "container",
        "bom-ref": subject.name,
        "name": subject.name,
        "version": subject.version,
        "properties": [{"name": _IDENTITY, "value": subject.identity}],
    }


def _distributions(root: Path) -> Iterator[Json]:
    for metadata in (root / "opt").glob("**/*.dist-info/METADATA"):
        # Only the header: a description may hold anything.
        header = HeaderParser().parsestr(metadata.read_text(errors="replace"))
        licence = header["License-Expression"] or header["License"] or ""
        yield _part("pypi", header["Name"], header["Version"], licence.splitlines()[0] if licence else "")


def _packages(root: Path) -> Iterator[Json]:
    status = root / _DPKG_STATUS
    if not status.exists():
        return
    for entry in status.read_text(errors="replace").split("\n\n"):
        fields = HeaderParser().parsestr(entry)
        if fields["Package"] and fields["Version"]:
            yield _part("deb/debian", fields["Package"], fields["Version"], "")


def _part(kind: str, name: str, version: str, licence: str) -> Json:
    url = f"pkg:{kind}/{quote(name.lower())}@{quote(version)}"
    part: Json = {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}
    if licence:
        part["licenses"] = [{"license": {"name": licence}}]
    return part
