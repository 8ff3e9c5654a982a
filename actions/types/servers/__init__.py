"""What is done to single servers from their beginning to their end."""
