"""Every wire type shares these rules."""

from spinney.api.meta import Object, ObjectMeta, Resource, decode


def test_go_null_for_an_empty_map_reads_as_absent() -> None:
    """Go writes `null` for an empty map or list; a reader must not choke on it."""
    metadata = decode(ObjectMeta, b'{"name": "a", "labels": null, "ownerReferences": null}')
    assert metadata == ObjectMeta(name="a")


def test_unknown_fields_are_ignored() -> None:
    """A newer API server may send fields that our narrow types do not have."""
    assert decode(Object, b'{"metadata": {"name": "a", "selfLink": "x"}, "spec": {}}').name == "a"


def test_paths_of_core_and_named_groups() -> None:
    """The core group lives under /api, all others under /apis; cluster-scoped kinds take no namespace."""
    assert Resource("v1", "Pod", "pods").path("ns", "a", "binding") == "/api/v1/namespaces/ns/pods/a/binding"
    nodes = Resource("v1", "Node", "nodes", namespaced=False)
    assert nodes.path("ns", "n") == "/api/v1/nodes/n"
    assert Resource("grove.io/v1alpha1", "PodCliqueSet", "podcliquesets").group == "grove.io"
