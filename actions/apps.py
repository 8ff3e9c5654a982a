from watcher_site.apps import SiteApp


class ActionsConfig(SiteApp):
    default = True
    name = "actions"
    contracts = {"ACTION_TYPES": "actions.types.base.ActionType"}

    def ready(self) -> None:
        from actions import checks  # noqa: F401 (registers them)
