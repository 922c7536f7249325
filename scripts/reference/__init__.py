"""The reference for users, from the code that it describes: a module for each page."""
