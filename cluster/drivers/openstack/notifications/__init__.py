"""Notifications of Nova and Cinder: payloads, changes of the site's tables, and the listener process."""
