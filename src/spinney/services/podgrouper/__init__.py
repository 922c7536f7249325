"""The pod grouper: finds the workload of a pod and maintains its PodGroup."""
