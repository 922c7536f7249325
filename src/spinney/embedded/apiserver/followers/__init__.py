"""Follow every write to the store, and write what results from it."""
