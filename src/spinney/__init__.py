"""Gang scheduling for Kubernetes: describe an AI workload once, get it placed together or not at all."""
