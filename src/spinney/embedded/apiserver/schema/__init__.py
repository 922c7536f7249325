"""What an object of a kind may hold, for built-in and custom kinds."""
