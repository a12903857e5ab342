"""Small tools and messages that the tests of this package share."""

import orjson

from proxy.settings import Deferral, Prediction
from proxy.tools.catalog import Catalogue, read_catalogue
from proxy.tools.rank import build_lexical
from proxy.tools.toolbox import Toolbox
from proxy.wire import JSONObject


def function(name: str, description: str = "", **properties: JSONObject) -> JSONObject:
    """A function tool with those properties, the first of them required."""
    parameters: JSONObject = {"type": "object", "properties": properties}
    if properties:
        parameters["required"] = [next(iter(properties))]
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def catalogue(*tools: JSONObject) -> Catalogue:
    """The catalogue of some tools."""
    found = read_catalogue(orjson.dumps(list(tools)))
    assert found is not None
    return found


def city_tools() -> list[JSONObject]:
    """Six tools of two servers."""
    text: JSONObject = {"type": "string"}
    return [
        function("weather_now", "Current weather of a city.", city=text),
        function("weather_forecast", "Weather forecast for the next days.", city=text),
        function("weather_alerts", "Storm warnings in force.", region=text),
        function("mail_send", "Sends an e-mail to somebody.", to=text, body=text),
        function("mail_search", "Searches the mailbox.", query=text),
        function("mail_delete", "Deletes one message.", id={"type": "integer"}),
    ]


def toolbox(*tools: JSONObject, **deferral: object) -> Toolbox:
    """A toolbox of some tools, none of them too small to be deferred."""
    settings = Deferral.model_validate({"small_chars": 0, **deferral})
    return Toolbox(catalogue(*tools), settings, Prediction(), build_lexical)
