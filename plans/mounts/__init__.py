"""The paths under which the site implements APIs of other OpenStack services."""
