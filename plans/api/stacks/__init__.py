"""The API of stacks and of their resources."""
