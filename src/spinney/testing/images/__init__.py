"""Container images built without a registry or a daemon: the base, Spinney's own, and the pause image."""
