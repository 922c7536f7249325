"""Resource claims, resource slices and compute domains."""
