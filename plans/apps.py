from watcher_site.apps import SiteApp


class PlansConfig(SiteApp):
    default = True
    name = "plans"
