"""Notifications of Nova and Cinder: the payloads, their effects on our tables, and the process that receives them."""
