"""The built-in kinds: one record per kind, in a module named after the resource's plural."""
