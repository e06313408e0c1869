"""The configuration classes that client scripts import: the tree itself, and what a task reader is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ajet.utils.config_tree import ConfigTree


class Config(ConfigTree):
    """The whole configuration: ``config.ajet.rollout.num_repeat`` reads and writes, ``to_dict()`` gives plain dicts.

    ``Config()`` holds the swarm defaults.
    """

    __slots__ = ()

    ajet: Any

    def __init__(self, ajet: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        if ajet is not None:
            self.ajet = ajet
            return
        from ajet.utils.config_loading import load_config  # imports this package

        self.merge(load_config())

    @staticmethod
    def update_from_dict_recursive(config: ConfigTree, values: Mapping[str, Any]) -> ConfigTree:
        """Lay ``values`` over ``config`` in place and return it; keys that are not known are kept."""
        config.merge(ConfigTree(values))
        return config


@dataclass
class HuggingfaceDatRepo:
    """A dataset of the Hugging Face hub, or a local parquet file."""

    dataset_path: str = "gsm8k"
    dataset_name: str | None = None
    training_split: str = "train"
    validation_split: str = "validation"
    http_proxy_address: str = ""


@dataclass
class JsonlTrainingFp:
    """A file with one JSON object per line."""

    file_path: str = ""


@dataclass
class JsonlDatasetFile:
    """The training and the validation file."""

    training: JsonlTrainingFp = field(default_factory=JsonlTrainingFp)
    validation: JsonlTrainingFp = field(default_factory=JsonlTrainingFp)


@dataclass
class AjetTaskReader:
    """Where tasks come from: the type, and the section that the type reads."""

    type: str = "huggingface_dat_repo"
    huggingface_dat_repo: HuggingfaceDatRepo = field(default_factory=HuggingfaceDatRepo)
    jsonl_dataset_file: JsonlDatasetFile = field(default_factory=JsonlDatasetFile)
