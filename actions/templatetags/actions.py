"""How templates name an action."""

from django import template

from actions.descriptions import manner
from actions.naming import resource

register = template.Library()
register.filter(resource)
register.filter(manner)
