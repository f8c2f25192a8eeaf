"""Prometheus metrics of one server: requests and their times by route, streams, prompts, tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from recollect.server.session_hub import SessionHub

METRICS_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class HttpMetrics:
    def __init__(self, hub: SessionHub, count_streams: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        labels = ("method", "route")
        self._requests = Counter(
            "recollect_http_requests",
            "Requests of our own face.",
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

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

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
