"""What is known about a training, each value with its source; what is not known stays unknown."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillpack.script import BadInput

KNOWN, ASSUMED, MEASURED, UNKNOWN = "known", "assumed", "measured", "unknown"

MAX_ENV_WORKER = "ajet.rollout.max_env_worker"
NUM_REPEAT = "ajet.rollout.num_repeat"
TRAIN_BATCH_SIZE = "ajet.data.train_batch_size"
SWARM_MODE = "ajet.enable_swarm_mode"
METHOD = "ajet.swarm_mode_sample_collection_method"
MAX_CACHED_EPISODES = "ajet.swarm_mode_sample_collection_max_cached_episodes"
MAX_NUM_SEQS = "ajet.rollout.max_num_seqs"
TENSOR_PARALLEL = "ajet.rollout.tensor_model_parallel_size"
MAX_MODEL_LEN = "ajet.rollout.max_model_len"
GPU_MEMORY_UTILIZATION = "ajet.rollout.gpu_memory_utilization"
N_GPUS_PER_NODE = "ajet.trainer_common.n_gpus_per_node"
NNODES = "ajet.trainer_common.nnodes"
TRACKER_THREADS = "ajet.interchange_server.max_inference_tracker_threads"
FASTAPI_THREADS = "ajet.interchange_server.max_fastapi_threads"
FASTAPI_PROCESSES = "ajet.interchange_server.num_fastapi_process"

KV_SEQUENCES = "kv_sequences"
OPEN_SLOTS = "open_slots"
CLIENT_POOLS = "client_pools"
CLIENTS = "clients"
CLIENT_POOL = "client_pool"
ENVIRONMENT = "environment_service"
OPEN_FILES = "open_files"
PORTS = "ephemeral_ports"

SURROUNDINGS = {
    CLIENT_POOLS: "each client's own thread pool (max_parallel), or more clients",
    ENVIRONMENT: "more instances of the environment service",
    OPEN_FILES: "ulimit -n",
    PORTS: "net.ipv4.ip_local_port_range",
}
"""Limits on running episodes that are not the engine's, each with what raises it."""

ALWAYS_LISTED = (CLIENT_POOLS, ENVIRONMENT)
"""Surroundings that exist in every training: listed as unknown where nobody gave them."""

FLAGS = {
    "max_env_worker": MAX_ENV_WORKER,
    "num_repeat": NUM_REPEAT,
    "batch_size": TRAIN_BATCH_SIZE,
    "environment": ENVIRONMENT,
}
"""Command line names that differ from the names of what they set."""

AT_LEAST_ONE = (
    MAX_ENV_WORKER,
    NUM_REPEAT,
    TRAIN_BATCH_SIZE,
    MAX_NUM_SEQS,
    TENSOR_PARALLEL,
    MAX_MODEL_LEN,
    N_GPUS_PER_NODE,
    NNODES,
    TRACKER_THREADS,
    FASTAPI_THREADS,
    FASTAPI_PROCESSES,
    CLIENTS,
    CLIENT_POOL,
    ENVIRONMENT,
)
"""Keys that count something: whole numbers from 1."""


@dataclass(frozen=True)
class Input:
    """One value: where it is from, and whether it is known, assumed, measured or unknown."""

    value: Any
    source: str
    known: str = KNOWN


NOT_GIVEN = Input(None, "not given", UNKNOWN)


class Inputs(Mapping[str, Input]):
    """Inputs by YAML key. A key that nobody gave reads as unknown, so ``inputs[key]`` never raises."""

    def __init__(self, values: Mapping[str, Input] | None = None) -> None:
        self._values = dict(values or {})
        for key in AT_LEAST_ONE:
            _require_count(key, self[key])

    def __getitem__(self, key: str) -> Input:
        if key == CLIENT_POOLS and key not in self._values:
            return self._client_pools()
        return self._values.get(key, NOT_GIVEN)

    def _client_pools(self) -> Input:
        """Return the sum of the clients' pools, known if their number and their size are."""
        clients, pool = self[CLIENTS], self[CLIENT_POOL]
        if clients.value is None or pool.value is None:
            return NOT_GIVEN
        return Input(clients.value * pool.value, f"{clients.value} clients * {pool.value} ({pool.source})")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def value(self, key: str) -> Any:
        """Return the value of ``key``, None if it is unknown."""
        return self[key].value

    def over(self, other: Inputs) -> Inputs:
        """Return the union of both, where this one wins."""
        return Inputs({**other._values, **self._values})

    def replace(self, changes: Mapping[str, Any], source: str) -> Inputs:
        """Return a copy in which ``changes`` (YAML key: value) win."""
        return Inputs({key: Input(value, source) for key, value in changes.items()}).over(self)


def _require_count(key: str, item: Input) -> None:
    if item.known == UNKNOWN:
        return
    if isinstance(item.value, bool) or not isinstance(item.value, int) or item.value < 1:
        raise BadInput(
            f"{key} is {item.value!r} ({item.source})",
            expected="a whole number, 1 or more",
            hint=f"correct it there, or give it by --set {key}=N",
        )


def from_command_line(path: str | None, settings: Sequence[str] = (), **flags: Any) -> Inputs:
    """Return what the flags give, over ``--set`` texts, over the file at ``path``.

    ``flags`` are the names in ``FLAGS`` and those of workload parameters; None means not given.
    """
    given = {FLAGS.get(name, name): Input(value, flag_of(name)) for name, value in flags.items() if value is not None}
    settings_given = {key: Input(value, "--set") for key, value in parse_settings(settings).items()}
    file = from_file(path) if path else Inputs()
    return Inputs(given).over(Inputs(settings_given)).over(file)


def flag_of(name: str) -> str:
    """Return the command line flag of a name in ``FLAGS``."""
    return f"--{name.replace('_', '-')}"


def from_file(path: str | Path) -> Inputs:
    """Return the effective configuration of a YAML file or of a client script's AgentJetJob call.

    The script is read, not run. Raises BadInput if the file cannot be read as either.
    """
    from skillpack.config.sources import read_source

    source = read_source(Path(path))
    values = {
        key: Input(value, str(source.provenance[key]) if key in source.provenance else str(path))
        for key, value in source.config.items()
        if value is not None
    }
    for key in (*AT_LEAST_ONE, METHOD, SWARM_MODE):
        reason = source.unknown_reason(key)
        if reason is not None:
            values[key] = Input(None, str(reason), UNKNOWN)
    return Inputs(values)


def parse_settings(texts: Sequence[str], also: Collection[str] = ()) -> dict[str, Any]:
    """Return ``--set KEY=VALUE`` texts as a mapping; values are read as YAML. Raises BadInput.

    Keys are those of the ajet tree, and the names in ``also``.
    """
    if not texts:
        return {}
    import yaml

    changes: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not (key.startswith("ajet.") or key in also):
            raise BadInput(
                f"--set {text}: not of the form KEY=VALUE",
                expected=f"a key of the ajet tree{', or ' + ', '.join(sorted(also)) if also else ''}, and a value",
                hint=f"--set {MAX_ENV_WORKER}=512",
            )
        if key not in also:
            _require_key(key)
        try:
            changes[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise BadInput(f"--set {text}: the value is not YAML", hint=f"--set {MAX_ENV_WORKER}=512") from None
    return changes


def _require_key(key: str) -> None:
    from skillpack.config.keys import all_keys, guess_key, other_releases

    if key not in all_keys() and key not in other_releases():
        guess = guess_key(key)
        raise BadInput(
            f"--set {key}: no key of the ajet tree, so it would change nothing",
            expected="a key that AgentJet reads; config.py explain KEY tells them",
            hint=f"did you mean {guess}?" if guess else f"--set {MAX_ENV_WORKER}=512",
        )
