from watcher_site.apps import SiteApp


class ClusterConfig(SiteApp):
    default = True
    name = "cluster"
    contracts = {
        "CLOUD": "cluster.drivers.base.Cloud",
        "DATASOURCE": "cluster.datasources.base.Datasource",
        "POLICY_TYPES": "cluster.policies.base.PolicyType",
    }

    def ready(self) -> None:
        from cluster import checks  # noqa: F401 (registers them)
        from cluster.drivers import openstack_messages  # noqa: F401 (registers them)
