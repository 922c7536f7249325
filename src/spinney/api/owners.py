"""Owner references: read and create them."""

from __future__ import annotations

from spinney.api.meta import Json, Object, ObjectMeta, OwnerReference


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The one owner that controls an object, if any."""
    return next((owner for owner in metadata.owner_references if owner.controller), None)


def controlled_by(metadata: ObjectMeta, owner: Object) -> bool:
    """Whether an object's controller is this owner, by UID."""
    controller = controller_of(metadata)
    return controller is not None and controller.uid == owner.uid


def controller_reference(owner: Object) -> Json:
    """The reference to the owner that controls a child; a foreground deletion of the owner waits for the child."""
    return {**reference(owner), "controller": True, "blockOwnerDeletion": True}


def reference(owner: Object) -> Json:
    """A plain owner reference: the child is deleted with the owner."""
    return {
        "apiVersion": owner.resource.api_version,
        "kind": owner.resource.kind,
        "name": owner.name,
        "uid": owner.uid,
    }
