"""A Kubernetes API in a process: store, REST, watch, admission, garbage collection, simulated nodes."""
