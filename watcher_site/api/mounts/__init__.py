"""The code that is shared by the mounts: paths under which the site answers as another OpenStack service."""
