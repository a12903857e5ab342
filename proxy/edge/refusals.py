"""The refusals that only HTTP knows; they belong to the tree in `proxy/errors.py`."""

from proxy.errors import BadRequest


class MethodNotAllowed(BadRequest):
    """The URL exists, for another method."""

    status = 405
    code = "method_not_allowed"


class HeadersTooLarge(BadRequest):
    """The request line and headers are over the limit."""

    status = 431
    code = "headers_too_large"


class NotOffered(BadRequest):
    """Something that the API has and Usher does not forward."""

    status = 501
    code = "not_implemented"
