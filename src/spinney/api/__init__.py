"""What the wire looks like: one module per API group, typed; CRDs are generated from these types."""
