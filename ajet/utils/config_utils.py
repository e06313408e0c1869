"""AgentJet's functions on configurations, for scripts that import them; ``load_config`` is this pack's own."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ajet.default_config import verl_mapping
from ajet.utils.config_layers import open_document
from ajet.utils.config_loading import (
    compose_document,
    default_path,
    layers_of,
    load_config,
    open_source,
    require_ajet,
    require_preamble,
)
from ajet.utils.config_tree import ConfigAssertionError, ConfigError, ConfigTree, Origin
from ajet.utils.config_yaml import Document, dump_text, read_document
from ajet.utils.files import replace_file


def read_ajet_hierarchical_config(
    yaml_fp: str | os.PathLike[str] | None,
    experiment_name: str | None = None,
    backbone: str | None = None,
    write_to: str | os.PathLike[str] | None = None,
    experiment_dir: str | None = None,
    override_param_callback: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return a YAML file as it stands (its ``defaults`` unread), with name, folder and backbone replaced where given.

    With a backbone, the defaults of the other one leave the preamble. ``None`` stands for a file
    that has only the classic preamble. ``write_to`` also writes the result.
    """
    if yaml_fp is None:
        preamble = open_document(default_path("swarm")).tree.to_dict()
        config: dict[str, Any] = {"ajet": {}, "hydra": preamble["hydra"], "defaults": preamble["defaults"]}
    else:
        config = read_document(yaml_fp).tree.to_dict()
    given = {"experiment_name": experiment_name, "experiment_dir": experiment_dir, "backbone": backbone}
    for key, value in given.items():
        if value is not None:
            config.setdefault("ajet", {})[key] = value
    _drop_backbone(config, _OTHER_BACKBONE.get(backbone or "", ""))
    if override_param_callback is not None:
        config = override_param_callback(config)
    if write_to:
        replace_file(Path(write_to), dump_text(config))
    return config


_OTHER_BACKBONE = {"verl": "trinity", "debug": "trinity", "trinity": "verl"}


def _drop_backbone(config: dict[str, Any], name: str) -> None:
    """Remove a backbone's defaults from a preamble, where they stand in it."""
    folders = (config.get("hydra") or {}).get("searchpath")
    for entries, gone in ((config.get("defaults"), f"{name}_default"), (folders, f"file://ajet/default_config/{name}")):
        if isinstance(entries, list) and gone in entries:
            entries.remove(gone)


def expand_ajet_hierarchical_config(
    config: Mapping[str, Any], write_to: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """Return a mapping read by ``read_ajet_hierarchical_config`` with the layers of its ``defaults`` filled in.

    Raises ConfigKeyError (a KeyError) if it has no ``defaults`` or no ``hydra`` key.
    """
    document = Document(ConfigTree(config, Origin("text")), "the configuration")
    require_preamble(document)
    expanded = compose_document(document, Path.cwd()).to_dict()
    if write_to:
        replace_file(Path(write_to), dump_text(expanded))
    return expanded


def read_ajet_config(yaml_fp: str | os.PathLike[str]) -> ConfigTree:
    """Return a YAML file with its layers filled in, as an attribute tree."""
    return load_config(Path(yaml_fp))


def align_parameters(
    from_config_fp: str | os.PathLike[str],
    to_config_fp: str | os.PathLike[str],
    convertion_json_fg: str | os.PathLike[str] | None = None,
    backbone: str = "verl",
) -> dict[str, Any]:
    """Copy the ``ajet`` values of one YAML file to the verl keys of another, in place, and return the result.

    ``convertion_json_fg`` is a JSON file of {ajet key: verl key or keys}; the packaged mapping if
    None. Unlike a released engine, a section (``fsdp_config``) is merged into verl's and does not
    replace it. Raises ConfigError for a mapped key that is missing and for LoRA without its load
    format.
    """
    values = read_document(from_config_fp).tree
    target = read_document(to_config_fp).tree
    mapping: Mapping[str, Any] = verl_mapping()
    if convertion_json_fg is not None:
        text = Path(convertion_json_fg).read_text(encoding="utf-8")
        mapping = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    for key, verl_keys in mapping.items():
        parent, _, last = key.rpartition(".")
        section = values.get(parent)
        if not isinstance(section, ConfigTree) or last not in section:
            raise ConfigError(f"{from_config_fp}: has no {key}, which verl's {verl_keys} is set from", key=key)
        for verl_key in [verl_keys] if isinstance(verl_keys, str) else verl_keys:
            value, old = section[last], target.get(verl_key)
            if isinstance(value, ConfigTree) and isinstance(old, ConfigTree):
                old.merge(value)
            else:
                target.set(verl_key, value, Origin("rule", note=f"from {key}"))
    if backbone == "verl":
        logger = target.get("trainer.logger")
        if isinstance(logger, str):
            target.set("trainer.logger", ["console", logger], Origin("rule"))
        check_lora(values)
    replace_file(Path(to_config_fp), dump_text(target.to_dict()))
    return target.to_dict()


def check_lora(tree: ConfigTree) -> None:
    """Raise ConfigError if LoRA is on without what loading its weights into the inference engine needs."""
    rank = tree.get("ajet.lora.lora_rank") or 0
    for key, needed in (("ajet.lora.load_format", "safetensors"), ("ajet.lora.layered_summon", True)):
        value = tree.get(key)
        if rank > 0 and value != needed:
            raise ConfigError(
                f"ajet.lora.lora_rank is {rank}, so {key} must be {needed!r}, but it is {value!r}", key=key, value=value
            )


def experiment_name_of(config: Mapping[str, Any], yaml_path: str | os.PathLike[str]) -> str:
    """Return the experiment's name: the one given, or for ``read_yaml_name`` the file's stem and a timestamp."""
    name = config["ajet"].get("experiment_name")
    if name is None or name == "read_yaml_name":
        stamp = datetime.datetime.now().strftime("%Y%m%d_%H%M%S_%f")[:-3]
        return f"{Path(yaml_path).stem}_{stamp}"
    return str(name).replace("|", "-")


def prepare_experiment_config(
    yaml_path: str | os.PathLike[str],
    exp_base_dir: str | os.PathLike[str],
    backbone: str,
    override_param_callback: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    storage: bool = True,
) -> tuple[str, str, str, dict[str, Any]]:
    """Lay out an experiment: ``<exp_base_dir>/<name>/yaml_backup.yaml`` with every default filled in, and ``backup/``.

    Returns (path of that file, the experiment's folder, its name, the configuration). With
    ``storage`` false nothing is written. ``BACK_TARGETS`` (comma-separated paths) are copied to
    ``backup/``. Raises ConfigAssertionError if the file's name does not end in .yaml, ConfigError
    if it cannot be used.
    """
    path = Path(yaml_path)
    if path.suffix != ".yaml":
        raise ConfigAssertionError(f"{path}: the name of a configuration file must end in .yaml", value=str(path))
    document = read_document(path)
    require_ajet(document)
    name = experiment_name_of(document.tree, path)
    folder = Path(exp_base_dir).absolute() / name
    config = read_ajet_hierarchical_config(
        path,
        experiment_name=name,
        backbone=backbone,
        experiment_dir=f"{exp_base_dir}/{name}",
        override_param_callback=override_param_callback,
    )
    final = expand_ajet_hierarchical_config(config)
    target = folder / "yaml_backup.yaml"
    if storage:
        backup = folder / "backup"
        backup.mkdir(parents=True, exist_ok=True)
        for item in filter(None, os.environ.get("BACK_TARGETS", "").split(",")):
            if Path(item).is_dir():
                shutil.copytree(item, backup / Path(item).name, dirs_exist_ok=True)
            elif Path(item).exists():
                shutil.copy2(item, backup)
        replace_file(target, dump_text(final))
    return str(target), str(folder), name, final


__all__ = [
    "ConfigError",
    "ConfigTree",
    "align_parameters",
    "compose_document",
    "default_path",
    "expand_ajet_hierarchical_config",
    "experiment_name_of",
    "layers_of",
    "load_config",
    "open_source",
    "prepare_experiment_config",
    "read_ajet_config",
    "read_ajet_hierarchical_config",
    "require_ajet",
    "require_preamble",
]
