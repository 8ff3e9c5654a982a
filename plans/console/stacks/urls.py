from django.urls import path

from plans.console.stacks.operations import DeleteStack, NewStack, UpdateStack
from plans.console.stacks.pages import ResourcePlace, StackList, StackPage

app_name = "stacks"
urlpatterns = [
    path("", StackList.as_view(), name="list"),
    path("<uuid:uuid>/", StackPage.as_view(), name="detail"),
    path("resources/<uuid:uuid>/", ResourcePlace.as_view(), name="resource"),
    path("new/", NewStack.as_view(), name="create"),
    path("<uuid:uuid>/update/", UpdateStack.as_view(), name="update"),
    path("<uuid:uuid>/delete/", DeleteStack.as_view(), name="delete"),
]
