"""What other packages may import from `spinney.backends`."""

from __future__ import annotations

from spinney import backends


def test_the_public_surface_is_pinned() -> None:
    """A name that appears or goes here is a change for every backend that others have written."""
    assert backends.__all__ == [
        "Backend",
        "Capabilities",
        "Cluster",
        "ClusterTopologyBinding",
        "Configured",
        "Drift",
        "Feature",
        "Json",
        "Loss",
        "Pod",
        "PodCliqueSet",
        "PodGang",
        "Problem",
        "QueueKeys",
        "Queued",
        "Readiness",
        "Remembering",
        "Resource",
        "Retrying",
        "Rule",
        "Served",
        "Setting",
        "TopologyAware",
        "Translation",
        "Wanted",
        "all_exist",
        "condition_message",
        "controller_reference",
        "edited_pod",
        "fitted_name",
        "gang_losses",
        "may_read",
        "may_read_settings",
        "may_write",
        "owned_metadata",
        "packed",
        "packed_whole",
    ]
    assert all(hasattr(backends, name) for name in backends.__all__)
