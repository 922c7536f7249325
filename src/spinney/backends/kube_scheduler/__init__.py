"""kube-scheduler's gang API, in the shape of each Kubernetes release."""
