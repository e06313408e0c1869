"""The rules that AgentJetJob checks, as a released one does: first on the kwargs alone, then on effective values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ajet.default_config import kwarg_table
from ajet.utils.config_tree import (
    ConfigAssertionError,
    ConfigError,
    ConfigNotImplementedError,
    ConfigTree,
    plain,
)

LENGTHS = ("max_prompt_length", "max_response_length", "max_model_len", "max_response_length_in_one_turn")
LORA_MIN_LR = 1e-5


def check_kwargs(given: Mapping[str, Any]) -> None:
    """Check the kwargs that are not None, without regard to the YAML. Raises ConfigError."""
    lengths = [name for name in LENGTHS if name in given]
    if lengths and len(lengths) < len(LENGTHS):
        missing = [name for name in LENGTHS if name not in given]
        raise ConfigError(
            f"{_named(given, *lengths)} given without {', '.join(f'{name} ({_key(name)})' for name in missing)}: "
            "the four length kwargs go together, whatever the YAML says; pass all four or none",
            key=_key(missing[0]),
        )
    if _number(given.get("lora_rank", 0), "lora_rank") > 0:
        _check_lora(given)


def _check_lora(given: Mapping[str, Any]) -> None:
    rank = _named(given, "lora_rank")
    if given.get("lora_load_format") != "safetensors":
        raise _lora_error(rank, given, "lora_load_format", 'must be "safetensors"')
    if not given.get("layered_summon"):
        raise _lora_error(rank, given, "layered_summon", "must be True")
    if "lr" not in given:
        raise _lora_error(rank, given, "lr", "must be given")
    if _number(given["lr"], "lr") <= LORA_MIN_LR:
        raise _lora_error(rank, given, "lr", f"must be above {LORA_MIN_LR:g}")


def check_effective(config: ConfigTree) -> None:
    """Check the values that hold after the kwargs. Raises ConfigError."""
    prompt, response, model, turn = (_number(config.get(_key(name)), name) for name in LENGTHS)
    if prompt + response > model:
        raise ConfigAssertionError(
            f"{_stated(config, 'max_prompt_length')} + {_stated(config, 'max_response_length')} = {prompt + response} "
            f"is more than {_stated(config, 'max_model_len')}; raise max_model_len or lower the other two",
            key=_key("max_model_len"),
            value=model,
        )
    if turn > response:
        raise ConfigAssertionError(
            f"{_stated(config, 'max_response_length_in_one_turn')} is more than "
            f"{_stated(config, 'max_response_length')}: one turn cannot be longer than the whole response",
            key=_key("max_response_length_in_one_turn"),
            value=turn,
        )
    backbone = config.get(_key("backbone"))
    if backbone == "trinity":
        raise ConfigNotImplementedError(
            f"{_stated(config, 'backbone')}: AgentJetJob cannot run the trinity backbone; use verl or debug",
            key=_key("backbone"),
            value=backbone,
        )


def _lora_error(rank: str, given: Mapping[str, Any], name: str, needed: str) -> ConfigError:
    value = given.get(name)
    found = f"it is {value!r}" if name in given else "it was not passed (the YAML's value does not count here)"
    message = f"{rank} needs LoRA settings: {name} ({_key(name)}) {needed}, {found}"
    return ConfigError(message, key=_key(name), value=value)


def _key(name: str) -> str:
    return str(kwarg_table()[name]["key"])


def _named(given: Mapping[str, Any], *names: str) -> str:
    return ", ".join(f"{name}={given[name]!r} ({_key(name)})" for name in names)


def _stated(config: ConfigTree, name: str) -> str:
    """Say a value with its kwarg, its key and who set it."""
    key = _key(name)
    origin = config.provenance(key)
    who = f", set by {origin}" if origin else ""
    return f"{name}={config.get(key)!r} ({key}{who})"


def _number(value: Any, name: str) -> float:
    number = plain(value)  # numpy's too
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ConfigError(
            f"{name}={value!r} ({_key(name)}): expected a number, not {type(value).__name__}",
            key=_key(name),
            value=value,
        )
    return number
