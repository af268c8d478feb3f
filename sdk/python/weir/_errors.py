"""The errors of a client."""


class WeirError(Exception):
    """Why a call failed."""


class Invalid(WeirError):
    """The request is invalid. The message says which field, and what to write."""


class HoldUnknown(WeirError):
    """There is no such hold, or it ended too long ago. Charge what is not charged yet with charge."""


class HoldExpired(WeirError):
    """The hold has expired. Charge what is not charged yet with charge."""


class Unavailable(WeirError):
    """weir is unavailable. Only the methods of a Hold raise it.

    Call again: a hold ends once, even if weir has got the first call.
    """


class Closed(WeirError):
    """The client was closed."""


def clip(text: str) -> str:
    """Shortens what a server said."""
    return text[:300] + "…" if len(text) > 300 else text
