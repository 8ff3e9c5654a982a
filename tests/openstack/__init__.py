"""Tests against Nova, Keystone, Placement, Glance and Cinder from PyPI, which `control_plane` installs and runs."""
