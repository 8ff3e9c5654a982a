"""Volumes of a real Cinder, whose backends only log what they would do."""
