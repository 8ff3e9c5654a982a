"""Notifications: what of the site's objects is told to others, and how it comes to them."""
