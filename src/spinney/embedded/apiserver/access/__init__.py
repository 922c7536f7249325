"""Authentication, authorization, and the reviews that ask about both."""
