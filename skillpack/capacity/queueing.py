"""Episodes that share an LLM as a closed queueing network: what is exact without simulation.

Source: Reiser and Lavenberg, "Mean-value analysis of closed multichain queuing networks", J. ACM 27 (1980).
"""

from __future__ import annotations

import math


def cycle_time(customers: int, think: float, service: float, servers: float) -> float:
    """Return the mean time of an episode in which ``customers`` share an LLM with ``servers`` servers.

    Each episode spends ``think`` seconds on its own and ``service`` seconds of LLM time; up to
    ``servers`` calls run at full speed, more share it (a fractional number is a throughput limit).
    Exact for exponential times or processor sharing: the load-dependent station's queue-length
    distribution is computed directly from the product form.
    """
    if service <= 0 or customers <= servers:
        return think + service
    if think <= 0:
        return customers * service / min(customers, servers)
    log_weights = [0.0]
    for calls in range(1, customers + 1):
        thinking = customers - calls + 1
        step = math.log(thinking) + math.log(service / think) - math.log(min(calls, servers))
        log_weights.append(log_weights[-1] + step)
    peak = max(log_weights)
    weights = [math.exp(weight - peak) for weight in log_weights]
    busy = sum(min(calls, servers) * weight for calls, weight in enumerate(weights)) / sum(weights)
    return customers * service / busy


def slowdown(customers: int, llm_share: float, servers: float | None) -> float:
    """Return by what factor contention for the LLM lengthens an episode."""
    if servers is None or llm_share <= 0:
        return 1.0
    return cycle_time(customers, 1 - llm_share, llm_share, servers)
