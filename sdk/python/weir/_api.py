# Generated from openapi.yaml; do not edit. To write it again: go test ./test/sdk -update

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Tuple, Union


@dataclass
class Request:
    """A request. A rule that needs a field which is left out does not apply."""

    ip: str = ""  # IP address of the client, without a port
    user: str = ""
    api_key: str = ""  # in plain text; weir hashes it before it stores or logs it
    tier: str = ""
    priority: str = ""  # how important the request is; default the priority that the rules give it
    method: str = ""
    host: str = ""
    path: str = ""  # escaped, as it was sent; it begins with a slash, and a query is removed
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    cost: Union[int, Mapping[str, int]] = 0  # One number for every rule, where 0 uses the cost of each rule; or numbers by unit, for the rules that have this unit. Other rules then have their own cost. A unit that no rule has is an error.


@dataclass
class Display:
    """of a rule that counts money, whose numbers are millionths: these for people; absent for other rules"""

    policy: str = ""  # the limit as a rule has it, such as 20usd/day
    cost: str = ""  # such as $0.0125
    limit: str = ""  # such as $20.00; absent, as remaining, if the store was unavailable
    remaining: str = ""
    reserved: str = ""  # of a denied request: what it lacks and others have only reserved

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "policy": ("policy", "string", True),
        "cost": ("cost", "string", True),
        "limit": ("limit", "string", False),
        "remaining": ("remaining", "string", False),
        "reserved": ("reserved", "string", False),
    }


@dataclass
class Override:
    """the temporary override that set the limit; absent if the limit comes from the rule"""

    id: str = ""
    ends_at: Optional[datetime] = None

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "id": ("id", "string", True),
        "ends_at": ("ends_at", "time", True),
    }


@dataclass
class Result:
    """The result of one limit."""

    rule: str = ""
    level: str = ""  # the level at which it counts, such as team; absent if the rule has no levels
    key: str = ""  # the key of the client
    algorithm: str = ""
    policy: str = ""  # the limit as written in a rule, such as 100/1m or concurrency 20
    allowed: bool = False
    shadow: bool = False  # the rule is in shadow or soft mode and denies nothing
    soft: bool = False  # the rule is in soft mode: it denies nothing, but the client is to be told
    asked: bool = False  # false if the store was unavailable; the numbers are then meaningless
    local: bool = False  # the store was unavailable for this limit, and the instance decided by itself; absent otherwise
    cost: int = 0
    excess: int = 0  # with charge always, units of the cost that were not charged, because the client is too deep in debt; absent if none
    leave: int = 0  # units that are left for requests with a higher priority, and are not among the remaining ones; absent if none
    limit: int = 0
    remaining: int = 0
    reserved: int = 0  # of a denied request: units that it lacks and that others have only reserved; absent if what it lacks is used up
    leased: int = 0  # units that other instances have on lease, as last known: neither used nor remaining, because they may be spent or returned; absent if none
    reset_at: int = 0
    reset_after: float = 0.0  # in seconds
    retry_after: float = 0.0  # in seconds
    delay: float = 0.0  # in seconds
    display: Optional[Display] = None
    penalty: bool = False  # a penalty of the rule runs, so the limit denies
    warning: int = 0  # the highest threshold of the rule that the usage has reached, in percent; absent if none
    override: Optional[Override] = None  # the temporary override that set the limit; absent if the limit comes from the rule

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "rule": ("rule", "string", True),
        "level": ("level", "string", False),
        "key": ("key", "string", True),
        "algorithm": ("algorithm", "string", True),
        "policy": ("policy", "string", True),
        "allowed": ("allowed", "boolean", True),
        "shadow": ("shadow", "boolean", False),
        "soft": ("soft", "boolean", False),
        "asked": ("asked", "boolean", True),
        "local": ("local", "boolean", False),
        "cost": ("cost", "number", True),
        "excess": ("excess", "number", False),
        "leave": ("leave", "number", False),
        "limit": ("limit", "number", True),
        "remaining": ("remaining", "number", True),
        "reserved": ("reserved", "number", False),
        "leased": ("leased", "number", False),
        "reset_at": ("reset_at", "number", True),
        "reset_after_ms": ("reset_after", "milliseconds", True),
        "retry_after_ms": ("retry_after", "milliseconds", False),
        "delay_ms": ("delay", "milliseconds", True),
        "display": ("display", Display, False),
        "penalty": ("penalty", "boolean", False),
        "warning": ("warning", "number", False),
        "override": ("override", Override, False),
    }


@dataclass
class Answer:
    """The numbers are those of one limit: for an allowed request the limit with the fewest units left, for a denied request the first limit in the document that denies. They are 0 if no limit was checked."""

    allowed: bool = False
    reason: str = ""
    status: int = 0  # of a denial: HTTP status for the end user
    rule: str = ""  # the rule of that limit
    level: str = ""  # the level of that limit, such as team; absent if the rule has no levels
    code: int = 0  # of a denial: application code of the rule
    message: str = ""  # of a denial: for the end user
    limit: int = 0
    remaining: int = 0
    reserved: int = 0  # of a denied request: units that it lacks and that others have only reserved, so that it may come again after a second; absent if what it lacks is used up
    reset_at: int = 0  # Unix seconds by the store's clock, rounded up
    reset_after: float = 0.0  # in seconds
    retry_after: float = 0.0  # in seconds; the longest of all limits that deny, and a second for requests in flight, which usually end sooner than their places expire; 0 if allowed; also 0 if waiting does not help
    delay: float = 0.0  # in seconds; delay the request for this long
    display: Optional[Display] = None
    hold: str = ""  # of a reservation that charged something
    hold_expires_at: Optional[datetime] = None  # by the store's clock
    unheld: bool = False  # of a reservation that was charged without a hold, because there are too many; what was charged stays
    priority: str = ""  # of the request; absent if it is normal
    degraded: bool = False  # the store was unavailable, or the rules or the clients are not loaded yet
    version: int = 0  # of the rules
    results: List[Result] = field(default_factory=list)

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "allowed": ("allowed", "boolean", True),
        "reason": ("reason", "string", True),
        "status": ("status", "number", False),
        "rule": ("rule", "string", False),
        "level": ("level", "string", False),
        "code": ("code", "number", False),
        "message": ("message", "string", False),
        "limit": ("limit", "number", True),
        "remaining": ("remaining", "number", True),
        "reserved": ("reserved", "number", False),
        "reset_at": ("reset_at", "number", True),
        "reset_after_ms": ("reset_after", "milliseconds", True),
        "retry_after_ms": ("retry_after", "milliseconds", False),
        "delay_ms": ("delay", "milliseconds", True),
        "display": ("display", Display, False),
        "hold": ("hold", "string", False),
        "hold_expires_at": ("hold_expires_at", "time", False),
        "unheld": ("unheld", "boolean", False),
        "priority": ("priority", "string", False),
        "degraded": ("degraded", "boolean", True),
        "version": ("version", "number", True),
        "results": ("results", [Result], True),
    }


@dataclass
class Part:
    rule: str = ""
    unit: str = ""
    shadow: bool = False
    reserved: int = 0
    used: int = 0  # 0 as long as the hold is open
    excess: int = 0  # units of what was used that were not charged, because the client is too deep in debt

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "rule": ("rule", "string", True),
        "unit": ("unit", "string", False),
        "shadow": ("shadow", "boolean", False),
        "reserved": ("reserved", "number", True),
        "used": ("used", "number", True),
        "excess": ("excess", "number", False),
    }


@dataclass
class Settled:
    """What has become of a hold."""

    state: str = ""
    expires_at: Optional[datetime] = None  # of an open hold
    parts: List[Part] = field(default_factory=list)  # One for each rule; none if it is pending.

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "state": ("state", "string", True),
        "expires_at": ("expires_at", "time", False),
        "parts": ("parts", [Part], True),
    }


@dataclass
class Problem:
    """An error, in the format of RFC 9457."""

    type: str = ""
    title: str = ""
    status: int = 0
    detail: str = ""  # what is wrong, and the remedy
    code: str = ""  # Which detail it is, if the type has several. Not every detail has a code.
    field: str = ""  # field of the body or the query
    request_id: str = ""

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "type": ("type", "string", True),
        "title": ("title", "string", True),
        "status": ("status", "number", True),
        "detail": ("detail", "string", True),
        "code": ("code", "string", False),
        "field": ("field", "string", False),
        "request_id": ("request_id", "string", False),
    }


@dataclass
class CounterKey:
    name: str = ""  # at most 256 bytes
    group: str = ""  # on a Redis cluster, counters of one group change together
    window: str = ""  # the calendar window after which it restarts from zero; default ever
    zone: str = ""  # IANA name of the time zone of the calendar; default UTC
    distinct: bool = False  # counts different members, each once in a window: exactly up to 512, then with a standard error of 0.81 %. Another counter than one of the same name without


@dataclass
class CounterDelta:
    name: str = ""  # at most 256 bytes
    group: str = ""  # on a Redis cluster, counters of one group change together
    window: str = ""  # the calendar window after which it restarts from zero; default ever
    zone: str = ""  # IANA name of the time zone of the calendar; default UTC
    distinct: bool = False  # counts different members, each once in a window: exactly up to 512, then with a standard error of 0.81 %. Another counter than one of the same name without
    by: Optional[float] = None  # may be negative; default 1
    members: List[str] = field(default_factory=list)  # the members to add to a distinct counter, instead of by; at most 256 for all counters together


@dataclass
class CounterSetting:
    name: str = ""  # at most 256 bytes
    group: str = ""  # on a Redis cluster, counters of one group change together
    window: str = ""  # the calendar window after which it restarts from zero; default ever
    zone: str = ""  # IANA name of the time zone of the calendar; default UTC
    distinct: bool = False  # counts different members, each once in a window: exactly up to 512, then with a standard error of 0.81 %. Another counter than one of the same name without
    value: float = 0.0


@dataclass
class Sample:
    name: str = ""  # at most 256 bytes
    group: str = ""  # on a Redis cluster, distributions of one group change together
    window: str = ""  # the calendar window after which it restarts from zero; default ever
    zone: str = ""  # IANA name of the time zone of the calendar; default UTC
    values: List[float] = field(default_factory=list)  # at most 1000 for all distributions together


@dataclass
class CounterValue:
    value: float = 0.0

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "value": ("value", "decimal", True),
    }


@dataclass
class CountersAnswer:
    counters: List[CounterValue] = field(default_factory=list)

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "counters": ("counters", [CounterValue], True),
    }


@dataclass
class PreviousValue:
    previous: float = 0.0

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "previous": ("previous", "decimal", True),
    }


@dataclass
class SetAnswer:
    counters: List[PreviousValue] = field(default_factory=list)

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "counters": ("counters", [PreviousValue], True),
    }


@dataclass
class ObserveAnswer:
    observed: int = 0  # number of values

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "observed": ("observed", "number", True),
    }


@dataclass
class CounterPoint:
    start: Optional[datetime] = None  # start of the window; absent without a window
    value: float = 0.0

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "start": ("start", "time", False),
        "value": ("value", "decimal", True),
    }


@dataclass
class CounterHistory:
    points: List[CounterPoint] = field(default_factory=list)

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "points": ("points", [CounterPoint], True),
    }


@dataclass
class CounterHistoryAnswer:
    counters: List[CounterHistory] = field(default_factory=list)

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "counters": ("counters", [CounterHistory], True),
    }


@dataclass
class Percentiles:
    """A distribution in figures: exact, except that percentiles are at most 1.6 % off. Without values, there is only the count."""

    start: Optional[datetime] = None  # start of the window; absent without a window
    count: int = 0
    sum: float = 0.0
    mean: float = 0.0
    min: float = 0.0
    max: float = 0.0
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "start": ("start", "time", False),
        "count": ("count", "number", True),
        "sum": ("sum", "decimal", False),
        "mean": ("mean", "decimal", False),
        "min": ("min", "decimal", False),
        "max": ("max", "decimal", False),
        "p50": ("p50", "decimal", False),
        "p95": ("p95", "decimal", False),
        "p99": ("p99", "decimal", False),
    }


@dataclass
class Distribution:
    points: List[Percentiles] = field(default_factory=list)
    merged: Percentiles = field(default_factory=Percentiles)

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "points": ("points", [Percentiles], True),
        "merged": ("merged", Percentiles, True),
    }


@dataclass
class DistributionsAnswer:
    distributions: List[Distribution] = field(default_factory=list)

    FIELDS: ClassVar[Dict[str, Tuple[str, Any, bool]]] = {
        "distributions": ("distributions", [Distribution], True),
    }
