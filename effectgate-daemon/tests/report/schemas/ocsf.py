#!/usr/bin/env python3
"""Writes ocsf-VERSION.json: what the Open Cybersecurity Schema Framework asks
of the classes that `effectgate report --ocsf` writes, as a JSON Schema.

    git clone https://github.com/ocsf/ocsf-schema && git -C ocsf-schema checkout 3dcb905d
    pip install ocsf-lib==0.10.4
    python3 -m ocsf.compile ocsf-schema > compiled.json
    python3 ocsf.py compiled.json > ocsf-1.8.0.json
"""

import json
import re
import sys

CLASSES = ["file_activity", "process_activity", "network_activity", "detection_finding"]
BASE = {"boolean_t": "boolean", "float_t": "number", "integer_t": "integer", "long_t": "integer", "string_t": "string"}

schema = json.load(open(sys.argv[1]))
wanted, defs = [], {}


def of_type(name):
    """A scalar: the base type, and what the type itself asks for."""
    if name == "json_t":
        return {}
    spec = schema["types"].get(name, {})
    result = {"type": BASE.get(spec.get("type") or name, "string")}
    if spec.get("range"):
        result["minimum"], result["maximum"] = spec["range"]
    if spec.get("max_len") and result["type"] == "string":
        result["maxLength"] = spec["max_len"]
    if spec.get("regex"):
        try:
            re.compile(spec["regex"])
            result["pattern"] = spec["regex"]
        except re.error:
            pass
    return result


def of_attribute(spec):
    name = spec["type"]
    if name == "object":
        result = {"type": "object"}
    elif name in schema["objects"]:
        wanted.append(name)
        result = {"$ref": "#/$defs/" + name.replace("/", "_")}
    else:
        result = of_type(name)
        if spec.get("enum") and result.get("type") == "integer":
            result["enum"] = sorted(int(key) for key in spec["enum"])
    return {"type": "array", "items": result} if spec.get("is_array") else result


def of_members(spec, profiles):
    """Attributes of profiles that an event does not name must not be there."""
    members = {
        name: attribute
        for name, attribute in spec["attributes"].items()
        if not attribute.get("profile") or attribute["profile"] in profiles
    }
    result = {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: of_attribute(members[name]) for name in sorted(members)},
        "required": sorted(name for name in members if members[name].get("requirement") == "required"),
    }
    choice = (spec.get("constraints") or {}).get("at_least_one")
    if choice:
        result["anyOf"] = [{"required": [name]} for name in choice]
    return result


PROFILES = {"host", "security_control"}
classes = {}
for name in CLASSES:
    spec = schema["classes"][name]
    uid = spec["uid"]
    members = of_members(spec, PROFILES)
    members["properties"]["class_uid"] = {"const": uid}
    members["properties"]["category_uid"] = {"const": uid // 1000}
    classes[uid] = members
while wanted:
    name = wanted.pop()
    key = name.replace("/", "_")
    if key not in defs:
        defs[key] = {}
        defs[key] = of_members(schema["objects"][name], PROFILES)

print(json.dumps({
    "$comment": "Made by ocsf.py from https://github.com/ocsf/ocsf-schema (Apache-2.0), version " + schema["version"],
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "oneOf": [classes[uid] for uid in sorted(classes)],
    "$defs": {name: defs[name] for name in sorted(defs)},
}, separators=(",", ":")))
