"""What several services read of a pod: its group, its usage, its device claims."""
