"""The API of actions and of their events."""
