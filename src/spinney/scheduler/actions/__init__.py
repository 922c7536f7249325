"""What a cycle does, step by step: place, move, take back, push out, and clear what cannot run."""
