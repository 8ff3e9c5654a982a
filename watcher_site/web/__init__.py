"""The web process: middleware, client addresses, and the worker class of gunicorn."""
