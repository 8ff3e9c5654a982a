"""Tests against Nova, Keystone, Placement and Glance from PyPI, which `control_plane` installs and runs."""
