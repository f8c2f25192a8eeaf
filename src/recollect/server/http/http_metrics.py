"""Prometheus metrics of one server: requests and their times by route, streams, prompts, tokens.

Labels are routes as the table writes them, never what a client sent.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from recollect.server.session_hub import SessionHub

METRICS_TYPE = CONTENT_TYPE_LATEST
_log = logging.getLogger("recollect.server.http")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class HttpMetrics:
    def __init__(self, hub: SessionHub, count_streams: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        labels = ("method", "route")
        self._requests = Counter(
            "recollect_http_requests",
            "Requests by route.",
            (*labels, "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "recollect_http_request_seconds",
            "Time until a response begins.",
            labels,
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._registry.register(_HubMetrics(hub, count_streams))

    def measured(self, route: Route, prefix: str = "") -> Route:
        """The route, with its requests counted."""
        app, path = route.app, prefix + route.path

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            begun = time.perf_counter()

            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self._observe(scope["method"], path, message["status"], begun)
                await send(message)

            try:
                await app(scope, receive, noted)
            except Exception:
                self._observe(scope["method"], path, 500, begun)
                raise

        route.app = counted
        return route

    def _observe(self, method: str, route: str, status: int, begun: float) -> None:
        seconds = time.perf_counter() - begun
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
        _log.debug("%s %s %d %.1f ms", method, route, status, seconds * 1_000)

    def render(self) -> bytes:
        return generate_latest(self._registry)


class _HubMetrics:
    """Reads the hub's counts when it is asked for them."""

    def __init__(self, hub: SessionHub, count_streams: Callable[[], int]) -> None:
        self._hub, self._count_streams = hub, count_streams

    def collect(self) -> Iterator[Metric]:
        counts = self._hub.counts
        yield GaugeMetricFamily(
            "recollect_event_streams", "Open event streams.", self._count_streams()
        )
        yield GaugeMetricFamily(
            "recollect_nplt_connections", "Open NPLT connections.", counts.connections
        )
        yield CounterMetricFamily(
            "recollect_nplt_connections_refused",
            "NPLT connections beyond a limit.",
            counts.refused_connections,
        )
        yield GaugeMetricFamily("recollect_prompts_running", "Prompts that run.", counts.running)
        yield GaugeMetricFamily("recollect_prompts_queued", "Prompts that wait.", counts.queued)
        yield CounterMetricFamily("recollect_prompts", "Prompts accepted.", counts.prompts)
        yield CounterMetricFamily("recollect_prompts_failed", "Prompts failed.", counts.failed)
        yield CounterMetricFamily(
            "recollect_prompts_cancelled", "Prompts cancelled.", counts.cancelled
        )
        yield CounterMetricFamily(
            "recollect_input_tokens", "Tokens sent to models.", counts.input_tokens
        )
        yield CounterMetricFamily(
            "recollect_output_tokens", "Tokens that models wrote.", counts.output_tokens
        )
