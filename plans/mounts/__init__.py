"""The mounts at which the site speaks as other OpenStack services do."""
