"""How templates name an action."""

from django import template

from actions.descriptions import manner, resource

register = template.Library()
register.filter(resource)
register.filter(manner)
