"""Print trees as Helm templates: YAML whose values are JSON, so that indentation never matters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from spinney.app.install.template import Digest, Document, Each, Expression, Merged, Tree, When

_STEP = "  "


def template_of(documents: Iterable[Tree]) -> str:
    """A template file with these documents."""
    return "\n".join(line for document in documents for line in _document(document)) + "\n"


def helpers_of(documents: Iterable[Tree]) -> str:
    """The named templates that documents need."""
    named = ['{{- define "spinney.named" -}}', "{{- $key := .key -}}{{- $list := list -}}"]
    named += [
        "{{- range .names }}{{- $list = append $list (dict $key .) }}{{- end -}}",
        "{{ toJson $list }}",
        "{{- end }}",
    ]
    lines = [*named]
    for name, tree in dict(_named_trees(list(documents))).items():
        lines += ["", f'{{{{- define "spinney.{name}" -}}}}', *_block(tree, ""), "{{- end }}"]
    return "\n".join(lines) + "\n"


def _document(document: Tree) -> Iterator[str]:
    if isinstance(document, When):
        yield f"{{{{- if {document.condition.go} }}}}"
        yield from _document(document.then)
        yield "{{- end }}"
    elif isinstance(document, Each):
        yield f"{{{{- range $item := {document.over.go} }}}}"
        for inner in document.documents:
            yield from _document(inner)
        yield "{{- end }}"
    else:
        yield "---"
        yield from _block(document, "")


def _block(tree: Tree, indent: str) -> Iterator[str]:
    """The lines of a map or a list."""
    if isinstance(tree, Merged):
        yield indent + _merged(tree)
    elif isinstance(tree, dict):
        for key, inner in tree.items():
            yield from _entry(f"{indent}{json.dumps(key) if _needs_quotes(key) else key}:", inner, indent)
    else:
        for inner in tree:
            yield from _entry(f"{indent}-", inner, indent)


def _entry(head: str, tree: Tree, indent: str) -> Iterator[str]:
    match tree:
        case When():
            yield f"{indent}{{{{- if {tree.condition.go} }}}}"
            yield from _entry(head, tree.then, indent)
            yield f"{indent}{{{{- end }}}}"
        case Expression():
            yield f"{head} {{{{ toJson ({tree.go}) }}}}"
        case Merged():
            yield f"{head} {_merged(tree)}"
        case Document():
            yield f"{head} {{{{ toJson ({_document_text(tree)}) }}}}"
        case Digest():
            yield f"{head} {{{{ {_document_text(tree.document)} | sha256sum | trunc 16 | toJson }}}}"
        case dict() | list() | tuple() if tree:
            yield head
            yield from _block(tree, indent + _STEP)
        case _:
            yield f"{head} {_literal(tree)}"


def _merged(tree: Merged) -> str:
    base = f'include "spinney.{tree.name}" $ | fromYaml'
    return f"{{{{ toJson (mergeOverwrite ({base}) (deepCopy ({tree.over.go}))) }}}}"


def _document_text(document: Document) -> str:
    return f'include "spinney.{document.name}" $ | fromYaml | toJson'


def _literal(data: object) -> str:
    """JSON, in which nothing looks like a directive of a template."""
    return json.dumps(data, ensure_ascii=False).replace("{{", '{{ "{{" }}')


def _needs_quotes(key: str) -> bool:
    return not key.replace("/", "").replace(".", "").replace("-", "").replace("_", "").isalnum()


def _named_trees(tree: Tree) -> Iterator[tuple[str, Tree]]:
    """The trees that stand in templates of their own, by name."""
    match tree:
        case Merged():
            yield tree.name, tree.base
            yield from _named_trees(tree.base)
        case Document():
            yield tree.name, tree.tree
            yield from _named_trees(tree.tree)
        case When():
            yield from _named_trees(tree.then)
        case Each():
            yield from _named_trees(list(tree.documents))
        case dict():
            for inner in tree.values():
                yield from _named_trees(inner)
        case list() | tuple():
            for inner in tree:
                yield from _named_trees(inner)
