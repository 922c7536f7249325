"""The objects of a manifest."""

from __future__ import annotations

from spinney.api.meta import Json, without_nulls
from spinney.api.yaml_reader import read_all_yaml


def objects_in(text: str | bytes) -> list[Json]:
    """The objects of YAML or JSON text, those inside Lists too; text that is neither is a `YamlError`."""
    documents = [document for document in read_all_yaml(text) if isinstance(document, dict)]
    return [without_nulls(item) for document in documents for item in _items(document)]


def _items(document: Json) -> list[Json]:
    if document.get("kind") != "List":
        return [document]
    items = document.get("items")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
