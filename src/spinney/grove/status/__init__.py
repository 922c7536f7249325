"""What the operator says about each object, computed from pods alone so that no stale status is ever believed."""
