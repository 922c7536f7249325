"""Plugins: each takes part in decisions through the hooks of a cycle."""
