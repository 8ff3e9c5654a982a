"""The history of operations on servers: Nova's instance actions."""
