"""What the step loop needs of a configuration, read once and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ajet.default_config import DUMMY_TASKS
from ajet.task_rollout.native_parallel_worker import count_slots
from ajet.utils.config_tree import ConfigTree
from ajet.utils.config_utils import ConfigError, compose_document, require_ajet
from ajet.utils.config_yaml import parse_document


@dataclass(frozen=True)
class RunSettings:
    """The configuration of one training run; paths are absolute, lengths are tokens."""

    project_name: str
    experiment_name: str
    experiment_dir: Path
    checkpoint_dir: Path
    model_path: str
    max_env_worker: int
    num_repeat: int
    train_batch_size: int
    slots: str
    cap: int
    sample_collection_method: str
    max_cached_episodes: int
    temperature: float
    top_p: float
    val_temperature: float
    val_top_p: float
    max_model_len: int
    max_response_length: int
    max_response_length_in_one_turn: int
    kl_coef: float
    save_freq: int
    steps_per_epoch: int
    total_steps: int
    loggers: tuple[str, ...]
    train_lines: Path | None
    val_lines: Path | None


def read_config(config_text: str) -> ConfigTree:
    """Return a configuration given as YAML text, with the swarm defaults filled in.

    What comes over the wire is text and never taken for a path. Raises ConfigError.
    """
    document = parse_document(config_text, "the training config")
    require_ajet(document)
    return compose_document(document, None)


def read_settings(config_text: str, *, slots: str = "documented", base_dir: Path | None = None) -> RunSettings:
    """Read the settings of a swarm run from a configuration's YAML text.

    Relative paths of the configuration lie under ``base_dir`` (default: the working directory).
    Raises ConfigError that names the key and the value.
    """
    return settings_of(read_config(config_text), slots=slots, base_dir=base_dir)


def settings_of(
    config: ConfigTree, *, slots: str = "documented", base_dir: Path | None = None, tasks: int = DUMMY_TASKS
) -> RunSettings:
    """Return the settings of a loaded configuration; ``tasks`` is the length of the training data.

    Raises ConfigError as ``read_settings`` does.
    """

    def get(key: str) -> Any:
        return config.get(f"ajet.{key}")

    def number(key: str, kind: Callable[[Any], Any], minimum: float | None = None) -> Any:
        value = get(key)
        try:
            if isinstance(value, bool):
                raise TypeError
            read = kind(value)
            if kind is int and read != float(value):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            whole = "whole " if kind is int else ""
            raise ConfigError(f"ajet.{key} is {value!r}; it must be a {whole}number") from None
        if minimum is not None and read < minimum:
            raise ConfigError(f"ajet.{key} is {value!r}; it must be at least {minimum:g}")
        return read

    base_dir = (base_dir or Path.cwd()).resolve()

    def path(key: str) -> Path | None:
        return base_dir / str(get(key)) if get(key) else None

    project = str(get("project_name"))
    name, directory = _experiment(str(get("experiment_name")), str(get("experiment_dir")), base_dir)
    batch = number("data.train_batch_size", int, 1)
    workers, repeat = number("rollout.max_env_worker", int, 1), number("rollout.num_repeat", int, 1)
    steps_per_epoch = max(1, tasks // batch)
    epochs_steps = steps_per_epoch * number("trainer_common.total_epochs", int, 1)
    steps = get("trainer_common.total_training_steps")
    return RunSettings(
        project_name=project,
        experiment_name=name,
        experiment_dir=directory,
        checkpoint_dir=base_dir / str(get("trainer_common.checkpoint_base_dir")) / project / name,
        model_path=str(get("model.path")),
        max_env_worker=workers,
        num_repeat=repeat,
        train_batch_size=batch,
        slots=slots,
        cap=count_slots(workers, repeat, batch, slots),
        sample_collection_method=str(get("swarm_mode_sample_collection_method")),
        max_cached_episodes=number("swarm_mode_sample_collection_max_cached_episodes", int, 1),
        temperature=number("rollout.temperature", float, 0),
        top_p=number("rollout.top_p", float, 0),
        val_temperature=number("rollout.val_kwargs.temperature", float, 0),
        val_top_p=number("rollout.val_kwargs.top_p", float, 0),
        max_model_len=number("rollout.max_model_len", int, 1),
        max_response_length=number("data.max_response_length", int, 1),
        max_response_length_in_one_turn=number("rollout.max_response_length_in_one_turn", int, 1),
        kl_coef=number("trainer_common.kl_loss_coef", float) if get("trainer_common.use_kl_loss") else 0.0,
        save_freq=number("trainer_common.save_freq", int),
        steps_per_epoch=steps_per_epoch,
        total_steps=epochs_steps if steps is None else number("trainer_common.total_training_steps", int, 1),
        loggers=_loggers(get("trainer_common.logger")),
        train_lines=path("trainer_common.train_print_to_markdown_file_path"),
        val_lines=path("trainer_common.val_print_to_markdown_file_path"),
    )


def _experiment(name: str, directory: str, base_dir: Path) -> tuple[str, Path]:
    """Return the experiment's name and folder: ``auto`` means ``saved_experiments/<name>``.

    A released server names a nameless experiment after a temporary file; ours is named by the time.
    """
    if name in ("read_yaml_name", "None", ""):
        name = f"swarm_{datetime.now():%Y%m%d_%H%M%S}"
    name = name.replace("|", "-").replace("/", "-")
    if directory == "auto":
        return name, base_dir / "saved_experiments" / name
    path = base_dir / Path(directory).expanduser()
    return name, path if path.name == name else path / name


def _loggers(value: Any) -> tuple[str, ...]:
    """Return the loggers of the run; the console always is one."""
    names = [value] if isinstance(value, str) else list(value or [])
    return tuple(dict.fromkeys(["console", *map(str, names)]))
