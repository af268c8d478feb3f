"""Writes what a verdict says into header fields and bodies, as weir's middleware for Go does."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Optional
from urllib.parse import quote

from ._api import Result
from ._fallback import Verdict

# Bounds a header that grows with the rules: proxies refuse a response whose headers are longer
# than a few kilobytes.
_MAX_POLICIES = 16

# The largest integer of RFC 9651.
_MAX_INTEGER = 999_999_999_999_999

_QUOTA = ("https://iana.org/assignments/http-problem-types#quota-exceeded", "Quota Exceeded")
_KINDS = {
    "blocked": ("about:blank", "Forbidden"),
    "unknown_client": ("about:blank", "Unauthorized"),
    "unavailable": ("https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", "Temporary Reduced Capacity"),
}


@dataclass
class Denial:
    """A complete answer to a denied request, with an application/problem+json body (RFC 9457)."""

    status: int
    headers: Dict[str, str]
    body: bytes


def headers_of(verdict: Verdict) -> Dict[str, str]:
    """Returns X-RateLimit-*, RateLimit-Policy and RateLimit, RateLimit-Warning near a limit, and Retry-After of a denied request."""
    headers: Dict[str, str] = {}
    speaker = _speaker(verdict)
    wait = 0.0 if verdict.allowed else verdict.retry_after
    if speaker:
        headers["X-RateLimit-Limit"] = str(speaker.limit)
        headers["X-RateLimit-Remaining"] = str(speaker.remaining)
        headers["X-RateLimit-Reset"] = str(speaker.reset_at)
    if verdict.degraded:
        headers["X-RateLimit-Degraded"] = "1"
    if speaker:
        until = wait or max(0.0, speaker.reset_after - verdict.delay)
        headers["RateLimit-Policy"] = _policies(verdict, speaker)
        headers["RateLimit"] = f'"{_name(verdict, speaker)}"{_parameter("r", speaker.remaining)}{_parameter("t", _seconds(until))}'
    warnings = _warnings(verdict)
    if warnings:
        headers["RateLimit-Warning"] = warnings
    if wait:
        headers["Retry-After"] = str(_seconds(wait))
    return headers


def denial_of(verdict: Verdict) -> Denial:
    """Returns the answer to a request that a verdict denies."""
    kind, title = _KINDS.get(verdict.reason, _QUOTA)
    problem: Dict[str, Any] = {"type": kind, "title": title, "status": verdict.status or 429}
    if verdict.message:
        problem["detail"] = verdict.message
    if verdict.rule:
        problem["rule"] = verdict.rule
    if verdict.level:
        problem["level"] = verdict.level
    if verdict.code:
        problem["code"] = verdict.code
    names = [_name(verdict, r) for r in verdict.results if r.asked and not r.shadow and not r.allowed]
    if verdict.reason == "limits" and names:
        problem["violated-policies"] = list(dict.fromkeys(names))
    if verdict.retry_after > 0:
        problem["retry_after"] = _seconds(verdict.retry_after)
    return _answer(problem, headers_of(verdict))


def invalid() -> Denial:
    """Returns the answer to a request that cannot be checked, because weir says that it is invalid."""
    detail = "The request is invalid, so its limits cannot be checked."
    return _answer({"type": "about:blank", "title": "Bad Request", "status": 400, "detail": detail}, {})


def _answer(problem: Dict[str, Any], headers: Dict[str, str]) -> Denial:
    headers = {**headers, "Cache-Control": "no-store", "Content-Type": "application/problem+json"}
    return Denial(problem["status"], headers, json.dumps(problem, separators=(",", ":")).encode() + b"\n")


def _speaker(v: Verdict) -> Optional[Result]:
    """The result that the numbers of a verdict come from."""
    for r in v.results:
        numbers = (r.rule, r.limit, r.remaining, r.reset_at)
        if not _hidden(r) and numbers == (v.rule, v.limit, v.remaining, v.reset_at) and (v.allowed or not r.allowed):
            return r
    return None


def _policies(v: Verdict, speaker: Result) -> str:
    """The limits that were asked, each once; the one that speaks is always among them."""
    every: List[Result] = []
    for r in v.results:
        last = len(every) == _MAX_POLICIES - 1 and not any(_same(other, speaker) for other in every)
        if _hidden(r) or len(every) == _MAX_POLICIES or (last and not _same(r, speaker)):
            continue
        if not any(_same(other, r) for other in every):
            every.append(r)
    return ", ".join(f'"{_name(v, r)}"{_parameter("q", r.limit)}{_window(r)}' for r in every)


def _hidden(r: Result) -> bool:
    """Whether a client is not told of a limit."""
    return not r.asked or (r.shadow and not r.soft)


def _warnings(v: Verdict) -> str:
    """The limits that have reached a threshold, and soft ones that were exceeded. Who is denied knows anyway."""
    every: List[Result] = []
    for r in v.results:
        tells = r.warning or (r.soft and not r.allowed)
        if v.allowed and tells and not _hidden(r) and not any(_same(other, r) for other in every):
            every.append(r)
    return ", ".join(_warning(v, r) for r in every[:_MAX_POLICIES])


def _warning(v: Verdict, r: Result) -> str:
    used = _parameter("used", r.warning) if r.warning else ""
    until = _seconds(max(0.0, r.reset_after - v.delay))
    soft = ";soft" if r.soft and not r.allowed else ""
    return f'"{_name(v, r)}"{used}{_parameter("r", r.remaining)}{_parameter("t", until)}{soft}'


def _same(a: Result, b: Result) -> bool:
    return (a.rule, a.level, a.policy, a.limit) == (b.rule, b.level, b.policy, b.limit)


_POLICY = re.compile(r"(\d{1,18})/(\d{1,18})(d|h|m|s|ms|us|ns)", re.ASCII)
_LENGTHS = {"d": 86_400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


def _window(r: Result) -> str:
    """The time in which the whole limit comes back, so that q/w is the rate also of a bucket with a burst."""
    match = _POLICY.fullmatch(r.policy)
    if not match or int(match[1]) == 0:
        return ""
    nanos = int(match[2]) * _LENGTHS[match[3]]
    if r.algorithm.endswith("_bucket"):
        nanos = r.limit * nanos // int(match[1]) // 1000 * 1000
    return _parameter("w", -(-nanos // 10**9)) if nanos >= 10**9 else ""


def _name(v: Verdict, r: Result) -> str:
    """The id of the rule, the level if it has levels and, if it has several limits for this client, the period."""
    several = any(other.rule == r.rule and other.level == r.level and not _same(other, r) for other in v.results)
    return _escaped(r.rule) + (":" + r.level if r.level else "") + (":" + _escaped(r.policy.partition("/")[2]) if several else "")


def _escaped(text: str) -> str:
    """What a header can have in quotes."""
    return quote(text, safe="!#$&'()*+,-./;<=>?@[]^_`{|}~", errors="replace")


def _parameter(name: str, n: int) -> str:
    return f";{name}={min(n, _MAX_INTEGER)}"


def _seconds(length: float) -> int:
    """Rounded up: a client that comes back a moment too early is denied again."""
    return math.ceil(round(length, 6))
