from django.urls import path

from plans.stack_pages import DeleteStack, NewStack, UpdateStack

app_name = "stacks"
urlpatterns = [
    path("new/", NewStack.as_view(), name="create"),
    path("<uuid:uuid>/update/", UpdateStack.as_view(), name="update"),
    path("<uuid:uuid>/delete/", DeleteStack.as_view(), name="delete"),
]
