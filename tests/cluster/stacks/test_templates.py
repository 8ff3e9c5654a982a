"""Templates of stacks: their normal form, and refusals with the path and the rule."""

import json

import pytest

from cluster.stacks.templates.templates import checked_template, normalise
from tests.builders import make_flavor, make_node
from watcher_site.refusals import Invalid

SMALL = {"type": "server", "properties": {"flavor": "small"}}
SERVER = {"flavor": "small", "image": None, "metadata": {}, "availability_zone": None}


def of(**resources):
    return {"resources": resources}


def server(**properties):
    return {"type": "server", "properties": {"flavor": "small", **properties}}


def group(size=1, member=SMALL, **properties):
    return {"type": "scaling_group", "properties": {"size": size, "member": member, **properties}}


def stack(template):
    return {"type": "stack", "properties": {"template": template}}


def nested(depth):
    return of(inner=stack(nested(depth - 1))) if depth else of(web=SMALL)


def test_normalised_template_has_defaults():
    template = normalise(of(db=SMALL, pool={**group(2), "depends_on": "db"}, inner=stack(of(web=SMALL))))
    assert template == {
        "version": 1,
        "description": "",
        "resources": {
            "db": {"type": "server", "properties": SERVER, "depends_on": []},
            "pool": {
                "type": "scaling_group",
                "properties": {
                    "size": 2,
                    "min_size": 0,
                    "max_size": -1,
                    "member": {"type": "server", "properties": SERVER},
                    "rolling_update": {"max_batch_size": 1, "pause_time": 0},
                },
                "depends_on": ["db"],
            },
            "inner": {
                "type": "stack",
                "properties": {
                    "template": {
                        "version": 1,
                        "description": "",
                        "resources": {"web": {"type": "server", "properties": SERVER, "depends_on": []}},
                    }
                },
                "depends_on": [],
            },
        },
    }


def test_normalisation_is_idempotent():
    template = normalise(of(pool=group(2, stack(of(web=server(image="debian", metadata={"a": "b"}))))))
    assert normalise(template) == template


def test_yaml_and_json_are_equivalent():
    yaml = "resources:\n  web: {type: server, properties: {flavor: small}}\n"
    assert normalise(yaml) == normalise(json.dumps(of(web=SMALL))) == normalise(of(web=SMALL))


def test_yaml_booleans_and_dates_are_strings():
    yaml = "resources: {web: {type: server, properties: {flavor: small, metadata: {on: yes, day: 2026-11-21}}}}"
    properties = normalise(yaml)["resources"]["web"]["properties"]
    assert properties["metadata"] == {"on": "yes", "day": "2026-11-21"}


def test_maximum_of_1000_resources_and_5_levels_is_accepted():
    assert normalise(of(pool=group(999)))
    assert normalise(nested(5))


MEMBER = "resources.pool.properties"
ABOVE = group(3, min_size=2, max_size=1)
REFUSED = [
    ([], "[] is not of type 'object'"),
    ({}, "'resources' is a required property"),
    ({**of(), "outputs": {}}, "('outputs' was unexpected)"),
    ({**of(), "version": 2}, "version: 2 is not one of [1]"),
    (of(**{"a/b": SMALL}), "resources: 'a/b' is not a valid name: 1 to 255 letters"),
    (of(**{"..": SMALL}), "resources: '..' is not a valid name: 1 to 255 letters"),
    (of(**{"web\n": SMALL}), "resources: 'web\\n' is not a valid name: 1 to 255 letters"),
    (of(**{"w" * 256: SMALL}), "is not a valid name: 1 to 255 letters"),
    (of(web={"type": "volume", "properties": {}}), "resources.web.type: 'volume' is not one of"),
    (of(web={"type": "server"}), "resources.web: 'properties' is a required property"),
    (of(web=server(size=1)), "resources.web.properties: Additional properties are not allowed ('size'"),
    (of(web=server(flavor=1)), "resources.web.properties.flavor: 1 is not of type 'string'"),
    (of(web=server(metadata={"a": True})), "resources.web.properties.metadata.a: True is not of type 'string'"),
    (of(web=server(image="a\0b")), "resources.web.properties.image: must not contain NUL characters"),
    (of(web={**SMALL, "depends_on": ["db"]}), "resources.web.depends_on: there is no resource db."),
    (of(web={**SMALL, "depends_on": "web"}), "resources.web.depends_on: web → web is a cycle."),
    (
        of(a={**SMALL, "depends_on": "b"}, b={**SMALL, "depends_on": "a"}),
        "resources.a.depends_on: a → b → a is a cycle.",
    ),
    (of(pool=group(-1)), f"{MEMBER}.size: -1 is less than the minimum of 0"),
    (of(pool=group(True)), f"{MEMBER}.size: True is not of type 'integer'"),
    (of(pool=group(1, min_size=2)), f"{MEMBER}.size: 1 is below the min_size of 2."),
    (of(pool=group(2, max_size=1)), f"{MEMBER}.size: 2 is above the max_size of 1."),
    (of(pool=ABOVE), f"{MEMBER}.min_size: 2 is above the max_size of 1."),
    (of(pool=group(1, group())), f"{MEMBER}.member.type: 'scaling_group' is not one of ['server', 'stack']"),
    (of(pool=group(1, server(flavor=""))), f"{MEMBER}.member.properties.flavor: '' should be non-empty"),
    (of(pool=group(1, rolling_update={"max_batch_size": 0})), "max_batch_size: 0 is less than the minimum of 1"),
    (of(pool=group(1, rolling_update={"pause_time": -1})), "pause_time: -1 is less than the minimum of 0"),
    (of(inner=stack("resources: {}")), "resources.inner.properties.template: 'resources: {}' is not of type 'object'"),
    (nested(6), "must not be nested deeper than 5 levels"),
    (of(a=stack(of(b=stack(of(c=stack(of(d=stack(of(e=stack(of(f=group()))))))))))), "deeper than 5 levels"),
    (of(pool=group(1000)), "resources: there would be 1001, with those in stacks and groups; at most 1000 are"),
    (of(pool=group(400, stack(of(a=SMALL, b=SMALL)))), "resources: there would be 1201"),
    (of(web=server(metadata={"a": "b" * 600_000})), "must not have more than 524288 bytes"),
]


@pytest.mark.parametrize(("template", "words"), REFUSED)
def test_invalid_template_is_refused_with_the_path(template, words):
    with pytest.raises(Invalid) as refusal:
        normalise(template)
    assert str(refusal.value).startswith("template: ")
    assert words in str(refusal.value)


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nresources: *b\n"
TEXTS = [
    ("", "template: is empty."),
    ("web", "'web' is not of type 'object'"),
    ("resources: [", "line 2: is neither JSON nor YAML"),
    ("a: 1\n\tb: 2\n", "line 2: is neither JSON nor YAML"),
    ("a: \x07", "it contains characters that neither allows"),
    (BOMB, "line 1: anchors and aliases are not taken."),
    ("resources: &r {web: *r}", "line 1: anchors and aliases are not taken."),
    ("resources: {}\nresources: {}\n", "line 2: resources is given twice."),
    ('{"resources": {}, "resources": {}}', "resources: is given twice."),
    ("resources: {}\n? [a]\n: b\n", "line 2: a name must be a text."),
    ("!!python/object/apply:os.system [ls]", "line 1: tags are not taken."),
    ("--- {}\n--- {}\n", "line 2: there must be one document."),
    ("[" * 5000, "must not be nested deeper than 50 levels"),
    ('{"a":' * 5000 + "1" + "}" * 5000, "must not be nested deeper than 50 levels"),
    ("resources: {pool: {type: scaling_group, properties: {size: .nan}}}", "resources.pool.properties"),
    ('{"resources": {"web": {"type": NaN}}}', "resources.web.type: must not contain infinite or undefined numbers"),
    ('{"resources": {"\\ud800": {}}}', "must not contain lone surrogates"),
    ("\ud800", "must not contain lone surrogates"),
    (" " * 600_000, "must not have more than 524288 bytes"),
]


@pytest.mark.parametrize(("text", "words"), TEXTS)
def test_unparsable_text_is_refused(text, words):
    with pytest.raises(Invalid) as refusal:
        normalise(text)
    assert str(refusal.value).startswith("template: ")
    assert words in str(refusal.value)


@pytest.mark.django_db
def test_flavors_and_zones_are_checked_with_two_queries(django_assert_num_queries):
    make_flavor("small", flavor_id="7")
    make_node(zone="north")
    template = of(a=server(availability_zone="north"), pool=group(3, stack(of(b=server(flavor="7")))))
    with django_assert_num_queries(2):
        assert checked_template(template) == normalise(template)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"flavor": "huge"}, "flavor: the cloud has no flavor huge."),
        ({"availability_zone": "south"}, "availability_zone: the cloud has no availability_zone south."),
    ],
)
def test_unknown_flavor_or_zone_is_refused(properties, words):
    make_flavor("small")
    with pytest.raises(Invalid) as refusal:
        checked_template(of(pool=group(2, stack(of(web=server(**properties))))))
    path = "resources.pool.properties.member.properties.template.resources.web.properties"
    assert str(refusal.value) == f"template: {path}.{words}"


def test_optional_server_properties_are_kept_and_empty_ones_omitted():
    given = {"key_name": "mine", "networks": "none", "scheduler_hints": {"group": "g"}, "tags": [], "user_data": ""}
    normalised = normalise(of(web=server(**given)))["resources"]["web"]["properties"]
    assert normalised == {**SERVER, "key_name": "mine", "networks": "none", "scheduler_hints": {"group": "g"}}


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"networks": [{"network": "a", "port": "b"}]}, "networks[0]: must have either network or port."),
        ({"networks": [{"network": "a", "fixed_ip": "x"}]}, "networks[0]: fixed_ip: x is not an IP address."),
        (
            {"block_device_mapping_v2": [{"boot_index": 0}]},
            "block_device_mapping_v2[0]: must have one of source_type, ",
        ),
        ({"tags": ["a/b"]}, "tags[0]: must contain neither a comma nor a slash."),
        ({"security_groups": "web"}, "security_groups: 'web' is not of type 'array'"),
        ({"user_data": "\u00e9" * 30_000}, "user_data: must not have more than 65535 bytes in base64."),
    ],
)
def test_invalid_optional_server_property_is_refused_with_the_path(properties, words):
    with pytest.raises(Invalid) as refused:
        normalise(of(web=server(**properties)))
    assert str(refused.value).startswith(f"template: resources.web.properties.{words}")
