"""The driver of a real OpenStack cloud, on openstacksdk."""

from cluster.drivers.openstack.cloud import OpenStackCloud

__all__ = ["OpenStackCloud"]
