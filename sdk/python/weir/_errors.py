"""The errors of a client."""


class WeirError(Exception):
    """Why a call failed."""


class Invalid(WeirError):
    """The request is invalid. The message says which field, and what to write."""


class HoldUnknown(WeirError):
    """There is no such hold, or it ended too long ago. Charge what is not charged yet with charge."""


class HoldExpired(WeirError):
    """The hold has expired. Charge what is not charged yet with charge."""


class OutOfRange(WeirError):
    """A counter would leave its range. Nothing was counted."""


class CountersFull(WeirError):
    """The counters in memory are full, and the call has a new name. Nothing was counted."""


class Unauthorized(WeirError):
    """weir needs a token, or one with another right."""


class Unavailable(WeirError):
    """weir is unavailable. Only the methods of a Hold and of Counters raise it.

    Call a hold again: it ends once, even if weir has got the first call. A change of counters may
    have been made.
    """


class Closed(WeirError):
    """The client was closed."""


def clip(text: str) -> str:
    """Shortens what a server said."""
    return text[:300] + "…" if len(text) > 300 else text
