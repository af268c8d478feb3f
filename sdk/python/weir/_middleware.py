"""What the middleware for WSGI and ASGI has in common."""

from __future__ import annotations

from dataclasses import fields

from ._api import Request
from ._fallback import Verdict
from ._headers import Denial, denial_of

# What a path keeps unescaped, if the server has unescaped it.
PATH_CHARACTERS = "/:@!$&'()*+,;=~"


def merge(request: Request, known: Request) -> None:
    """Puts what a program knows about a request in place of what is certain. Fields that are empty change nothing."""
    for f in fields(known):
        if getattr(known, f.name):
            setattr(request, f.name, getattr(known, f.name))


def denied(verdict: Verdict, headers: bool) -> Denial:
    """Returns the answer to a denied request, with or without the headers about limits."""
    denial = denial_of(verdict)
    if not headers:
        denial.headers = {"Cache-Control": "no-store", "Content-Type": "application/problem+json"}
    return denial


def too_many_delayed(verdict: Verdict) -> None:
    """Denies a request that would have to wait, because too many do."""
    verdict.allowed, verdict.reason, verdict.status = False, "unavailable", 503
    verdict.retry_after, verdict.message = verdict.delay, "Too many requests are delayed; try again soon."
