"""The API of servers and of their instance actions."""
