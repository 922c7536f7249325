"""The pod grouper: finds the workload a pod belongs to and keeps its PodGroup as the workload asks."""
