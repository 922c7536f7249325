"""Create, update, patch, apply and delete."""
