"""DescribeConfigs (32): the settings of a topic, or of this broker, with where each value comes from."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from cluster.broker.server import Exchange
from cluster.broker.services import Services
from cluster.config.errors import ConfigError
from cluster.config.keys import Kind, TypedConfig
from cluster.config.topic import validate
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class


class ResourceType(IntEnum):
    """What settings are asked of."""

    TOPIC = 2
    BROKER = 4


class ConfigSource(IntEnum):
    """Where a value comes from."""

    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5


_TYPES = {
    Kind.BOOLEAN: 1,
    Kind.STRING: 2,
    Kind.INT: 3,
    Kind.DOUBLE: 6,
    Kind.LIST: 7,
    Kind.PASSWORD: 9,
}


class _Unknown(Exception):
    """A resource that is not there or not here."""

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code


def handle(services: Services, request: Any, exchange: Exchange) -> Any:
    response = response_class(ApiKey.DESCRIBE_CONFIGS)
    results = []
    for asked in request.resources:
        code, message, configs = ErrorCode.NONE, None, []
        try:
            config, set_here, source = _find(services, asked.resource_type, asked.resource_name)
            configs = _entries(config, set_here, source, asked.configuration_keys, request)
        except _Unknown as error:
            code, message = error.error_code, str(error)
        except ConfigError as error:
            code, message = ErrorCode.INVALID_CONFIG, str(error)
        results.append(
            response.DescribeConfigsResult(
                error_code=code,
                error_message=message,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
                configs=configs,
            )
        )
    return response(results=results)


def _find(services: Services, resource_type: int, name: str) -> tuple[TypedConfig, Mapping[str, object], ConfigSource]:
    """The typed settings, those of them that are set on the resource itself, and what their source is called."""
    if resource_type == ResourceType.TOPIC:
        if services.metadata.topic(name) is None:
            raise _Unknown(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name!r}")
        set_here = services.metadata.topic_config(name)
        return validate(set_here, services.config), set_here, ConfigSource.TOPIC
    if resource_type == ResourceType.BROKER:
        if name != str(services.config.broker_id):
            raise _Unknown(ErrorCode.INVALID_REQUEST, f"this is broker {services.config.broker_id}, not {name!r}")
        return services.config, services.config.given, ConfigSource.STATIC_BROKER
    raise _Unknown(ErrorCode.INVALID_REQUEST, f"resource type {resource_type}")


def _entries(
    config: TypedConfig,
    set_here: Mapping[str, object],
    source: ConfigSource,
    names: list[str] | None,
    request: Any,
) -> list[Any]:
    entry = response_class(ApiKey.DESCRIBE_CONFIGS).DescribeConfigsResult.DescribeConfigsResourceResult
    entries = []
    for name in config if names is None else [name for name in names if name in config]:
        key = config.table.keys[name]
        is_secret = key.kind is Kind.PASSWORD
        value = None if is_secret or config[name] is None else key.text(config[name])
        where = source if name in set_here else ConfigSource.DEFAULT
        synonyms = [entry.DescribeConfigsSynonym(name=name, value=value, source=where)]
        entries.append(
            entry(
                name=name,
                value=value,
                read_only=source is ConfigSource.STATIC_BROKER,
                config_source=where,
                is_sensitive=is_secret,
                synonyms=synonyms if request.include_synonyms else [],
                config_type=_TYPES[key.kind],
                documentation=key.doc if request.include_documentation else None,
            )
        )
    return entries
