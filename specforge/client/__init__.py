"""SGLang's HTTP API. This package alone knows the wire: routes, field names of all versions, streams."""

from specforge.client.control import ControlClient
from specforge.client.endpoint import Endpoint, parse_header

__all__ = ["ControlClient", "Endpoint", "parse_header"]
