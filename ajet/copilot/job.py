"""AgentJetJob: a thin overlay on a YAML file.

The YAML is the source of truth for defaults, kwargs are sparse overrides of it, and attribute writes
on ``job.config.ajet`` reach the keys that have no kwarg. The kwargs and the keys that they stand for
are listed in ``ajet/default_config/job_kwargs.json``.
"""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ajet.copilot.job_rules import check_effective, check_kwargs
from ajet.default_config import kwarg_table
from ajet.default_config.ajet_config_schema import Config
from ajet.utils.config_layers import open_document
from ajet.utils.config_loading import compose_document, default_path, require_ajet, require_preamble
from ajet.utils.config_tree import ConfigError, ConfigNotImplementedError, Origin, caller_origin
from ajet.utils.config_yaml import dump_text
from ajet.utils.files import replace_file

HUGGINGFACE = ("hf", "huggingface", "huggingface_dat_repo")
DUMMY = ("random_dummy", "dummy")


class AgentJetJob:
    """What a training job is to be: ``config`` holds it all, ``dump_job_as_yaml`` writes what the engine reads.

    A kwarg that is None leaves the YAML's value. The kwargs that stand for a YAML key are
    attributes with the effective value; the key reference of the swarm-configuration
    skill says what each does.

    Raises ConfigError (a ValueError, and also the KeyError, AssertionError or NotImplementedError
    that a released AgentJet raises in its place); its message names the kwarg, the YAML key and
    the value. Prints nothing and leaves no files.
    """

    config: Config
    config_as_dict: dict[str, Any]

    def __init__(
        self,
        ensure_new_experiment: bool = False,
        base_yaml_config: str | os.PathLike[str] | None = None,
        experiment_dir: str | None = None,
        project_name: str | None = None,
        experiment_name: str | None = None,
        logging: str | None = None,
        n_gpu: int | None = None,
        nnodes: int | None = None,
        model: str | None = None,
        algorithm: str | None = None,
        num_repeat: int | None = None,
        batch_size: int | None = None,
        swarm_mode: bool | None = None,
        swarm_mode_sample_collection_method: str | None = None,
        max_env_worker: int | None = None,
        backbone: str | None = None,
        max_prompt_length: int | None = None,
        max_response_length: int | None = None,
        max_response_length_in_one_turn: int | None = None,
        max_model_len: int | None = None,
        tensor_model_parallel_size: int | None = None,
        max_num_seqs: int | None = None,
        mini_batch_num: int | None = None,
        lora_rank: int | None = None,
        lora_alpha: int | None = None,
        lora_target_modules: str | None = None,
        lora_load_format: str | None = None,
        layered_summon: bool | None = None,
        gpu_memory_utilization: float | None = None,
        lr: float | None = None,
        ppo_epochs: int | None = None,
        use_kl_loss: bool | None = None,
        use_kl_in_reward: bool | None = None,
        kl_penalty_type: str | None = None,
        compute_madness_checklist: list[str] | None = None,
        val_print_to_markdown_file_path: str | None = None,
        train_print_to_markdown_file_path: str | None = None,
        total_training_steps: int | None = None,
        timeline_compare_level: str | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name in kwarg_table() and value is not None}
        if base_yaml_config is None:
            base_yaml_config = default_path("swarm")
        elif not Path(base_yaml_config).exists():
            raise ConfigError(
                f"base_yaml_config={os.fspath(base_yaml_config)!r}: there is no such file "
                f"(relative paths start at {Path.cwd()})",
                value=os.fspath(base_yaml_config),
            )
        check_kwargs(given)
        self.ensure_new_experiment = ensure_new_experiment
        self.base_yaml_config = os.fspath(base_yaml_config)
        self._load(base_yaml_config)
        for name, value in given.items():
            key = kwarg_table()[name]["key"]
            if key is not None:
                self.config.set(key, value, caller_origin("kwarg", kwarg=name))
        if ensure_new_experiment:
            self._make_name_new()
        check_effective(self.config)
        nodes = self.config.ajet.trainer_common.nnodes
        if isinstance(nodes, int) and nodes > 1 and self.config.ajet.enable_swarm_mode:
            self.config.set(
                "ajet.interchange_server.interchange_method",
                "tcp",
                Origin("rule", note="more than one node in swarm mode"),
            )

    def __getattr__(self, name: str) -> Any:
        key = kwarg_table().get(name, {}).get("key")
        if key is None or "config" not in self.__dict__:
            raise AttributeError(f"AgentJetJob has no attribute {name!r}")
        return self.config.get(key)

    def __setattr__(self, name: str, value: Any) -> None:
        key = kwarg_table().get(name, {}).get("key")
        if key is None:
            object.__setattr__(self, name, value)
            return
        warnings.warn(
            f"job.{name} = {value!r} sets {key} here, but a released AgentJet ignores it; "
            f"write job.config.{key} = {value!r}, or pass the kwarg {name}",
            stacklevel=2,
        )
        self.config.set(key, value)

    def build_job_from_yaml(self, yaml_path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Make a YAML file (the base file if None) the job's configuration, and return it as a dict.

        Kwargs of the constructor are gone then: the file is what is dumped and synced. A released
        AgentJet only returns the dict and dumps what it had, hence the warning. Raises ConfigError.
        """
        warnings.warn(
            "build_job_from_yaml replaces the configuration here, but a released AgentJet goes on dumping the old one; "
            "construct AgentJetJob(base_yaml_config=...) instead",
            stacklevel=2,
        )
        self._load(yaml_path if yaml_path is not None else self.base_yaml_config)
        check_effective(self.config)
        return self.config_as_dict

    def dump_job_as_yaml(self, yaml_path: str | os.PathLike[str]) -> str:
        """Write the YAML file that an engine reads, and return its path. Parent folders are made."""
        replace_file(Path(yaml_path), dump_text(self.config.to_dict()))
        return os.fspath(yaml_path)

    def set_workflow(self, workflow: str | Callable[..., Any], ensure_reward_in_workflow: bool = False) -> AgentJetJob:
        """Set the workflow class (or its ``module->name``) that runs an episode in classic mode, and return the job.

        ``ensure_reward_in_workflow`` is accepted because released scripts pass it; it changes nothing, there as here.
        """
        from ajet.utils.dynamic_import import cls_to_path

        self.config.ajet.rollout.user_workflow = workflow if isinstance(workflow, str) else cls_to_path(workflow)
        return self

    def set_data(
        self, type: str, dataset_path: str, training_split: str = "train", validation_split: str = "test"
    ) -> AgentJetJob:
        """Read tasks from a Hugging Face dataset (``hf``) or from nowhere (``dummy``), and return the job.

        Raises ConfigNotImplementedError for other types, which are set up in YAML.
        """
        reader = self.config.ajet.task_reader
        if type in HUGGINGFACE:
            reader.type = "huggingface_dat_repo"
            reader.huggingface_dat_repo.dataset_path = dataset_path
            reader.huggingface_dat_repo.training_split = training_split
            reader.huggingface_dat_repo.validation_split = validation_split
        elif type in DUMMY:
            reader.type = "random_dummy"
        else:
            raise ConfigNotImplementedError(
                f"set_data(type={type!r}): expected one of {', '.join(HUGGINGFACE + DUMMY)}; "
                "set ajet.task_reader.type and its section in the YAML for other types",
                key="ajet.task_reader.type",
                value=type,
            )
        return self

    def _load(self, path: str | os.PathLike[str]) -> None:
        document = open_document(Path(path))
        require_preamble(document)
        require_ajet(document)
        self.config = Config()  # so that no section is missing, whatever the file's chain brings
        del self.config["defaults"], self.config["hydra"]
        self.config.merge(compose_document(document, Path(path).absolute().parent))
        self.config_as_dict = self.config.to_dict()
        for key, value in ADDED.items():
            if self.config.get(key) is None:
                self.config.set(key, value, Origin("default", note="added by AgentJetJob"))

    def _make_name_new(self) -> None:
        name = self.config.ajet.experiment_name
        if name != "read_yaml_name":  # which gets its own timestamp when the engine starts
            stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
            origin = caller_origin("kwarg", kwarg="ensure_new_experiment")
            self.config.set("ajet.experiment_name", f"{name}_{stamp}", origin)


ADDED: dict[str, Any] = {
    "ajet.trainer_verl": {},
    "ajet.task_reader.huggingface_dat_repo.dataset_name": None,
    "ajet.task_reader.huggingface_dat_repo.http_proxy_address": "",
}
"""Keys that the default files lack and that a released AgentJetJob writes."""
