"""What the controllers of a control plane do, seen through its API."""
