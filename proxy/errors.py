"""The error tree; every class knows the HTTP status and the OpenAI `type` and `code` it becomes.

UsherError
├── ConfigError            a setting is wrong; one line for the operator
├── BadRequest             400  the caller sent something Usher itself must refuse
│   ├── MethodNotAllowed   405  the URL exists, for another method
│   ├── BodyTooLarge       413
│   ├── UnsupportedEncoding 415
│   ├── HeadersTooLarge    431
│   ├── ClientTooSlow      408  its request did not arrive in time
│   └── NotOffered         501  the API has it, Usher does not forward it
├── Unauthorized           401  no key, or one that is not ours
├── Forbidden              403  a valid key that may not do this
├── NotFound               404
├── RateLimited            429  carries `retry_after` seconds
├── Unavailable            503  draining or overloaded; carries `retry_after` seconds
└── UpstreamError          502  the upstream gave no usable answer
    ├── ConnectFailed      502  nothing was accepted: safe to retry
    ├── UpstreamTimeout    504  it went quiet for longer than the idle timeout
    ├── UpstreamRefused    any  it answered with an error of its own, which is handed on
    └── StreamTruncated    502  it ended before the answer did
"""

from proxy.wire import Headers, JSONObject


class UsherError(Exception):
    """A failure with a public face.

    `message` reaches the client, so it never holds a secret, a body or a memory value.
    """

    status: int = 500
    type: str = "server_error"
    code: str | None = None

    def __init__(
        self, message: str, *, param: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after = retry_after
        self.headers: Headers = []

    def body(self) -> JSONObject:
        """OpenAI's error object, all four keys present."""
        return {
            "error": {
                "message": self.message,
                "type": self.type,
                "param": self.param,
                "code": self.code,
            }
        }


class ConfigError(UsherError):
    """A setting that cannot be used."""

    code = "config_error"


class BadRequest(UsherError):
    """The caller sent something Usher itself must refuse."""

    status = 400
    type = "invalid_request_error"


class MethodNotAllowed(BadRequest):
    """The URL exists, for another method."""

    status = 405
    code = "method_not_allowed"


class BodyTooLarge(BadRequest):
    """The request body is over the configured limit."""

    status = 413
    code = "request_too_large"


class UnsupportedEncoding(BadRequest):
    """The request body has a content encoding that Usher cannot decode."""

    status = 415
    code = "unsupported_content_encoding"


class HeadersTooLarge(BadRequest):
    """The request line and headers are over the limit."""

    status = 431
    code = "headers_too_large"


class ClientTooSlow(BadRequest):
    """A request whose head or body does not arrive."""

    status = 408
    code = "request_timeout"


class NotOffered(BadRequest):
    """Something that the API has and Usher does not forward."""

    status = 501
    code = "not_implemented"


class Unauthorized(UsherError):
    """No key, or one that is not ours."""

    status = 401
    type = "invalid_request_error"
    code = "invalid_api_key"


class Forbidden(UsherError):
    """A valid key that may not do this."""

    status = 403
    type = "permission_error"
    code = "forbidden"


class NotFound(UsherError):
    """No such URL or object."""

    status = 404
    type = "invalid_request_error"
    code = "unknown_url"


class RateLimited(UsherError):
    """A limit of the key is reached; `retry_after` says when to come back."""

    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"


class Unavailable(UsherError):
    """Usher is draining or overloaded."""

    status = 503
    code = "unavailable"


class UpstreamError(UsherError):
    """The upstream gave no usable answer."""

    status = 502
    type = "upstream_error"
    code = "upstream_error"


class ConnectFailed(UpstreamError):
    """No connection was made, so nothing was accepted and a retry is safe."""

    code = "upstream_unreachable"


class UpstreamTimeout(UpstreamError):
    """The upstream went quiet for longer than the idle timeout."""

    status = 504
    type = "timeout_error"
    code = "upstream_timeout"


class UpstreamRefused(UpstreamError):
    """The upstream answered a hidden round with an error, which becomes the client's."""

    def __init__(self, status: int, error: JSONObject, retry_after: float | None = None) -> None:
        super().__init__(str(error.get("message")), retry_after=retry_after)
        self.status = status
        self.code = f"http_{status}"
        self._error = error

    def body(self) -> JSONObject:
        """The upstream's own error object."""
        return {"error": self._error}


class StreamTruncated(UpstreamError):
    """The upstream's answer ended before its finish reason."""

    code = "stream_truncated"
