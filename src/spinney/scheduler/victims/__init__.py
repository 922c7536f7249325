"""The search for victims whose eviction makes room for a gang."""
