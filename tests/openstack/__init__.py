"""Tests against OpenStack services from PyPI, which `control_plane` installs and runs."""
