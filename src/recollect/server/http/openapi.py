"""The OpenAPI 3.1 description of our own face, made from the route table and its types."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from recollect import __version__
from recollect.schema import json_schema
from recollect.server.http.api_call import FileBytes, NoBody
from recollect.server.http.api_table import ROUTES, ApiRoute
from recollect.server.http.problem_details import ProblemDetails

REFERENCE = "#/components/schemas/{name}"
_STREAM = "text/event-stream"
_TAG = "The head of the session, as an entity tag."


def describe_api() -> dict[str, Any]:
    """The whole document."""
    types = [ProblemDetails, *(t for route in ROUTES for t in _types_of(route))]
    references, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    schemas = dict(zip(map(_key, types), references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route, schemas, components
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "recollect",
            "version": __version__,
            "description": "Sessions, what models see of them, and prompts.",
        },
        "paths": paths,
        "components": {
            "schemas": {**components, **_entry_schemas()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _types_of(route: ApiRoute) -> list[Any]:
    found = [route.query, route.body, route.value]
    return [t for t in found if t is not None and t is not FileBytes]


def _key(kind: Any) -> str:
    return str(kind)


def _entry_schemas() -> dict[str, Any]:
    """The published schema of entries, which allows what newer versions write."""
    parts = msgspec.json.encode(json_schema()["$defs"])
    found: dict[str, Any] = msgspec.json.decode(
        parts.replace(b"#/$defs/", REFERENCE.format(name="").encode())
    )
    return found


def _operation(
    route: ApiRoute, schemas: dict[str, Any], components: dict[str, Any]
) -> dict[str, Any]:
    summary, _, more = (route.handler.__doc__ or "").partition("\n\n")
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": " ".join(summary.split()),
        "parameters": [*_path_parameters(route), *_query_parameters(route, components)],
        "responses": _responses(route, schemas),
    }
    if more:
        operation["description"] = " ".join(more.split())
    if route.right is None:
        operation["security"] = []
    else:
        operation["x-right"] = route.right
    if route.method == "GET" and route.value is not None:
        operation["parameters"].append(_header("If-None-Match", "Answer 304 if this is current."))
    if route.method != "GET" and "{session}" in route.path:
        operation["parameters"].append(_header("If-Match", "Answer 412 if the head is another."))
    if route.is_stream:
        operation["parameters"].append(_header("Last-Event-ID", "Resume after this event."))
    if body := _request_body(route, schemas):
        operation["requestBody"] = body
    return operation


def _header(name: str, description: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string"},
    }


def _path_parameters(route: ApiRoute) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]


def _query_parameters(route: ApiRoute, components: dict[str, Any]) -> list[dict[str, Any]]:
    schema = components[route.query.__name__]
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": one}
        for name, one in schema["properties"].items()
    ]


def _request_body(route: ApiRoute, schemas: dict[str, Any]) -> dict[str, Any] | None:
    if route.body is NoBody:
        return None
    if route.body is FileBytes:
        schema = {"type": "string", "format": "binary"}
        return {"required": True, "content": {"application/octet-stream": {"schema": schema}}}
    needed = any(field.required for field in msgspec.structs.fields(route.body))
    content = {"application/json": {"schema": schemas[_key(route.body)]}}
    return {"required": needed, "content": content}


def _responses(route: ApiRoute, schemas: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    headers = {"ETag": {"description": _TAG, "schema": {"type": "string"}}}
    if route.value is not None:
        content["application/json"] = {"schema": schemas[_key(route.value)]}
    if route.is_stream:
        content[_STREAM] = {"schema": {"type": "string"}}
    if not content:
        content["*/*"] = {"schema": {"type": "string"}}
    problem = {"schema": schemas[_key(ProblemDetails)]}
    succeeded = {"description": "Done.", "content": content, "headers": headers}
    responses: dict[str, Any] = {str(route.status): succeeded}
    if route.status == 201 and route.body is FileBytes:
        responses["200"] = succeeded  # nothing in it was new
    if route.is_stream and route.status != 200:
        responses["200"] = succeeded
    if route.method == "GET" and route.value is not None:
        responses["304"] = {"description": "The client has it already."}
    responses["default"] = {
        "description": "An error.",
        "content": {"application/problem+json": problem},
    }
    return responses
