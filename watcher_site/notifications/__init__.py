"""Notifications: messages about changes of the site's objects, and their delivery to receivers."""
