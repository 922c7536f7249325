"""What a set replica consists of and should look like, as plain data: no I/O."""
