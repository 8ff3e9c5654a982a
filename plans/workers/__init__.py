"""The workers of Celery: messages, transport, task process and watchdog."""
