"""The API's page, rendered from its OpenAPI schema without scripts and without a CDN."""

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase

Json = Mapping[str, Any]
# A docstring's line end inside a paragraph.
LINE_END = re.compile(r"(?<!\n)\n(?!\n)")


class Pages(DocsBase):
    """One page with every operation, its fields and its replies."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        schema = api.get_openapi_schema(path_params=kwargs)
        # All operations have the same body of errors, so each lists only the statuses of its errors.
        operations = []
        for path, methods in schema["paths"].items():
            for method, operation in methods.items():
                content = operation.get("requestBody", {}).get("content", {})
                media = next(iter(content), "")
                statuses = {str(status): reply for status, reply in operation["responses"].items()}
                success = [status for status in statuses if int(status) < HTTPStatus.BAD_REQUEST]
                reply = statuses[success[0]].get("content", {}).get("application/json", {}).get("schema", {})
                described = {
                    "method": method.upper(),
                    "path": path,
                    "summary": operation.get("summary", ""),
                    "description": LINE_END.sub(" ", operation.get("description", "")),
                    "media": media,
                    "fields": list(_fields(schema, content[media]["schema"])) if media else [],
                    "statuses": " or ".join(sorted(success)),
                    "reply": list(_fields(schema, reply)),
                    "errors": ", ".join(sorted(set(statuses) - set(success))),
                }
                operations.append(described)
        context = {
            "title": "API",
            "api": api,
            "openapi_url": self.get_openapi_url(api, kwargs),
            "site": request.build_absolute_uri("/").rstrip("/"),
            "operations": operations,
            "error": list(_fields(schema, schema["components"]["schemas"]["ErrorOut"])),
        }
        return render(request, "api/api.html", context)


def _fields(schema: Json, node: Json, prefix: str = "") -> Iterator[dict[str, Any]]:
    """The fields of an object. A field that is an object is followed by that object's fields, named by their path."""
    node = _resolved(schema, node)
    required = node.get("required", [])
    for name, child in node.get("properties", {}).items():
        resolved_child = _resolved(schema, child)
        yield {
            "name": f"{prefix}{name}",
            "type": _type(schema, child),
            "required": name in required,
            "description": resolved_child.get("description", "") if "$ref" in child else child.get("description", ""),
        }
        # A field that may be an object or null is described by the object.
        objects = [option for option in resolved_child.get("anyOf", ()) if "properties" in _resolved(schema, option)]
        item = _resolved(schema, objects[0] if objects else resolved_child.get("items", resolved_child))
        ending = "[]." if "items" in resolved_child else "."
        yield from _fields(schema, item, f"{prefix}{name}{ending}")


def _resolved(schema: Json, node: Json) -> Json:
    while "$ref" in node:
        node = schema["components"]["schemas"][node["$ref"].rpartition("/")[2]]
    return node


def _type(schema: Json, node: Json) -> str:
    node = _resolved(schema, node)
    if "anyOf" in node:
        return " or ".join(_type(schema, option) for option in node["anyOf"])
    if "enum" in node:
        return " | ".join(str(value) for value in node["enum"])
    if node.get("type") == "array":
        return f"list of {_type(schema, node.get('items', {}))}"
    return str(node.get("format") or node.get("type", "anything"))
