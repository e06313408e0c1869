"""Reading client scripts without running them: what is known, what is not, and why."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ajet.copilot.job import AgentJetJob
from skillpack.config.jobs import read_jobs
from skillpack.config.sources import Source, read_source, read_sources
from skillpack.script import BadInput

REPEAT = "ajet.rollout.num_repeat"
BATCH = "ajet.data.train_batch_size"
WORKERS = "ajet.rollout.max_env_worker"


def script(tmp_path: Path, text: str, name: str = "train.py") -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def value_of(tmp_path: Path, before: str, expression: str, scope: str = "") -> tuple[Any, str]:
    """Return what ``num_repeat=<expression>`` is read as, and the note; (None, reason) if it is unknown."""
    text = f"from ajet.copilot.job import AgentJetJob\nimport os, math\n{textwrap.dedent(before)}\n"
    source = read_source(script(tmp_path, f"{text}{scope}job = AgentJetJob(num_repeat={expression})\n"))
    reason = source.unknown_reason(REPEAT)
    if reason is not None:
        assert REPEAT not in source.config
        return None, reason.reason
    return source.config[REPEAT], source.provenance[REPEAT].note


KNOWN = [
    ("", "8", 8),
    ("N = 8", "N", 8),
    ("N: int = 8", "N", 8),
    ("A, B = 4, 8", "B", 8),
    ("A = B = 8", "B", 8),
    ("N = 2 ** 3 * 4 // 2 - 1", "N", 15),
    ("N = 64 * 8", "N + 1_000", 1512),
    ("N = 4\nN = 8", "N", 8),
    ("N = 16\nM = N\nN = 4", "M", 16),
    ("N = 130", "math.ceil(N / 8) * 8", 136),
    ("N = '8'", "int(N)", 8),
    ("N = [4, 8]", "N[1]", 8),
    ("N = [4, 8]", "max(N)", 8),
    ("N = {'a': 8}", "N['a']", 8),
    ("CFG = dict(a=4)\nCFG['b'] = 8", "CFG['b']", 8),
    ("CFG = dict(a=4)\nCFG.update(a=8)", "CFG['a']", 8),
    ("FAST = True", "8 if FAST else 4", 8),
    ("FAST = not True", "8 if FAST or 3 > 4 else 4", 4),
    ("class C:\n    n = 8", "C.n", 8),
    ("class B:\n    n = 8\nclass C(B):\n    m = 4", "C.n", 8),
    ("class C:\n    m = 4\n    n = m * 2", "C.n", 8),
    ("class C:\n    n = 8\nc = C()", "c.n", 8),
    ("class C:\n    def __init__(self, n=8):\n        self.n = n\nc = C()", "c.n", 8),
    ("class C:\n    def __init__(self, n=4):\n        self.n = n * 2\nc = C(4)", "c.n", 8),
    ("from dataclasses import dataclass\n@dataclass\nclass C:\n    n: int = 4\nc = C(n=8)", "c.n", 8),
    ("from dataclasses import dataclass\n@dataclass\nclass C:\n    m: int\n    n: int = 4\nc = C(1, 8)", "c.n", 8),
    ("from dataclasses import dataclass, field\n@dataclass\nclass C:\n    n: int = field(default=8)", "C().n", 8),
    ("class C:\n    n = 4\nc = C()\nc.n = 8", "c.n", 8),
    ("class S:\n    n = 8\nclass C:\n    s = S()\nc = C()", "c.s.n", 8),
    ("def f():\n    return 8", "f()", 8),
    ("class C:\n    n = 8\ndef make():\n    c = C()\n    return c", "make().n", 8),
    ("def f(n): return n", "f(6) + f(2)", 8),
    ("def f(n, m=2):\n    k = n * m\n    return k", "f(4)", 8),
    ("class C:\n    def __init__(self, n): self.n = n * 2\na, b = C(4), C(5)", "a.n", 8),
    (
        "class B:\n    def __init__(self, n): self.n = n\nclass C(B):\n    def __init__(self, m):\n"
        "        super().__init__(m * 2)\nc = C(4)",
        "c.n",
        8,
    ),
    ("class B:\n    def __init__(self, n=8): self.n = n\nclass C(B):\n    pass\nc = C()", "c.n", 8),
    ("class C:\n    def __init__(self, n): self.n = n\ndef make(k): return C(k * 2)", "make(4).n", 8),
    (
        "from dataclasses import dataclass\n@dataclass\nclass B:\n    m: int\n@dataclass\nclass C(B):\n    n: int = 4",
        "C(1, 8).n",
        8,
    ),
    ("from pydantic import BaseModel, Field\nclass C(BaseModel):\n    n: int = Field(8, ge=1)", "C().n", 8),
    ("if __name__ == '__main__':\n    N = 8", "N", 8),
    ("try:\n    N = 8\nfinally:\n    pass", "N", 8),
]


@pytest.mark.parametrize(("before", "expression", "expected"), KNOWN)
def test_a_value_is_read_off(tmp_path: Path, before: str, expression: str, expected: int) -> None:
    value, note = value_of(tmp_path, before, expression)
    assert value == expected, note
    assert note == ""


NOTED = [
    ("N = int(os.getenv('N', '8'))", "N", 8, "unless the environment variable N is set"),
    ("N = os.environ.get('N', 8)", "N", 8, "unless the environment variable N is set"),
    ("N = os.getenv('N') or 8", "N", 8, "unless the environment variable N is set"),
    (
        "from x import BaseSettings\nclass C(BaseSettings):\n    n = 8\nc = C()",
        "c.n",
        8,
        "as C defines it; its base BaseSettings may change it",
    ),
    (
        "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('--grpo-n', type=int, default='8')\nargs = p.parse_args()",
        "args.grpo_n",
        8,
        "unless the script is called with --grpo-n",
    ),
]


@pytest.mark.parametrize(("before", "expression", "expected", "note"), NOTED)
def test_a_default_is_read_off_with_a_note(
    tmp_path: Path, before: str, expression: str, expected: int, note: str
) -> None:
    assert value_of(tmp_path, before, expression) == (expected, note)


UNKNOWN = [
    ("", "N", "not defined"),
    ("N = os.environ['N']", "N", "comes from the environment"),
    ("N = int(os.getenv('N'))", "N", "environment variable N, which has no default"),
    ("import random\nN = random.randint(1, 8)", "N", "computed when the script runs"),
    ("from torch import N", "N", "imported from torch, which is not beside the script"),
    ("if os.path.exists('x'):\n    N = 8\nelse:\n    N = 4", "N", "under a condition"),
    ("N = 8\nif os.path.exists('x'):\n    N = 4", "N", "under a condition"),
    ("for N in (4, 8):\n    pass", "N", "cannot be read off"),
    ("N = 8\nN += 1", "N", "cannot be read off"),
    ("N = 8\ndef f():\n    global N\n    N = 4", "N", "assigned inside a function"),
    ("class C:\n    n = 8\nC.n = input()", "C.n", "changed at train.py"),
    ("class C:\n    n = 8\ndef f(c: C):\n    c.n = 4\nc = C()", "c.n", "changed at train.py"),
    ("class C:\n    n = 8\nc = C()\nif os.path.exists('x'):\n    c.n = 4", "c.n", "changed at line"),
    (
        "class C:\n    def __init__(self):\n        self.n = 8\n    def g(self):\n        self.n = 4\nc = C()",
        "c.n",
        "more than one way",
    ),
    ("class C:\n    n = 8\nc = C()\nsetattr(c, 'n', 4)", "c.n", "changed at train.py"),
    ("class C:\n    n = 8\n    def __post_init__(self):\n        self.n = 4\nc = C()", "c.n", "more than one way"),
    ("class B:\n    def tune(self): self.n = 4\nclass C(B):\n    n = 8\nc = C()", "c.n", "more than one way"),
    ("from enum import IntEnum\nclass C(IntEnum):\n    n = 8", "C.n", "member of an Enum"),
    ("class C:\n    @property\n    def n(self): return 8\nc = C()", "c.n", "object of the script"),
    ("CFG = dict(n=8)\nCFG.update(load())", "CFG['n']", "cannot be read off"),
    ("CFG = dict(n=8)\nfor k in 'n':\n    CFG[k] = 4", "CFG['n']", "changed at line"),
    (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n')\nargs = p.parse_args()",
        "args.n",
        "no default",
    ),
    ("N = 9 ** 9 ** 9", "N", "absurd size"),
    ("N = 'x' * 10 ** 9", "N", "absurd size"),
    ("N = [0] * 10 ** 9", "N", "absurd size"),
    ("N = '%999999999d' % 8", "N", "absurd size"),
    ("N = '%*d' % (10 ** 9, 8)", "N", "absurd size"),
    ("N = f'{8:>999999999}'", "N", "absurd size"),
    ("N = {[1]: 8}[1]", "N", "unhashable"),
    ("N = {[1]: 8}", "N[1]", "unhashable"),
    ("N = {}\nN[[1]] = 8", "N[1]", "unhashable"),
    ("N = {**8}", "N", "not iterable"),
    ("N = 1 / 0", "N", "ZeroDivisionError"),
    ("def f(): return f()", "f()", "computed when the script runs"),
    ("class A:\n    x = 1\nN = A()", "N", "object of the script"),
    ("N = lambda: 8", "N()", "computed when the script runs"),
    ("N = [n for n in (8,)][0]", "N", "computed when the script runs"),
]


@pytest.mark.parametrize(("before", "expression", "said"), UNKNOWN)
def test_what_depends_on_the_run_is_unknown(tmp_path: Path, before: str, expression: str, said: str) -> None:
    value, reason = value_of(tmp_path, before, expression)
    assert value is None
    assert said in reason


def test_the_script_is_not_run(tmp_path: Path) -> None:
    text = "from ajet import AgentJetJob\nopen('ran', 'w')\nraise SystemExit\njob = AgentJetJob(num_repeat=8)\n"
    assert read_source(script(tmp_path, text)).config[REPEAT] == 8
    assert not Path("ran").exists()


def test_a_parameter_is_what_its_only_caller_passes(tmp_path: Path) -> None:
    source = read_source(
        script(
            tmp_path,
            """
            from ajet import AgentJetJob
            def build(n, batch=16, workers=64, *, lr=1e-6):
                n = n or 4
                return AgentJetJob(num_repeat=n, batch_size=batch, max_env_worker=workers, lr=lr)
            build(8, workers=128)
            """,
        )
    )
    assert (source.config[REPEAT], source.config[BATCH], source.config[WORKERS]) == (8, 16, 128)


def test_a_parameter_that_nobody_passes_is_its_default_with_a_note(tmp_path: Path) -> None:
    text = "from ajet import AgentJetJob\ndef build(n=8):\n    return AgentJetJob(num_repeat=n)\n"
    source = read_source(script(tmp_path, text))
    assert source.config[REPEAT] == 8
    assert "a caller may pass another" in source.provenance[REPEAT].note


@pytest.mark.parametrize(
    "calls", ["build(8)\nbuild(4)", "build(*x)", "build(**x)", "build(8)\nbuild()", "build(input())"]
)
def test_a_parameter_that_varies_is_unknown(tmp_path: Path, calls: str) -> None:
    text = f"from ajet import AgentJetJob\ndef build(n=16):\n    return AgentJetJob(num_repeat=n)\n{calls}\n"
    assert REPEAT not in read_source(script(tmp_path, text)).config


COCKTAIL_CONFIG = """
from dataclasses import dataclass, field
from typing import List
import os

@dataclass
class CocktailV2Config:
    total_batch_size: int = 32
    grpo_n: int = 8
    max_env_worker: int = 64 * 8
    schedule: str = "linear"
    checks: List[str] = field(default_factory=lambda: ["nonsense"])

def config_from_env() -> CocktailV2Config:
    cfg = CocktailV2Config()
    schedule = os.getenv("SCHEDULE")
    if schedule is not None:
        cfg.schedule = schedule
    return cfg
"""

COCKTAIL_CLIENT = """
from ajet.copilot.job import AgentJetJob
from tutorial.cocktail.settings import CocktailV2Config{more}

def build(cfg: CocktailV2Config) -> AgentJetJob:
    ajet_job = AgentJetJob(
        num_repeat=cfg.grpo_n,
        batch_size=cfg.total_batch_size,
        max_env_worker=cfg.max_env_worker,
        experiment_name=cfg.schedule,
        compute_madness_checklist=list(cfg.checks),
    )
    rollout = ajet_job.config.ajet.rollout
    rollout.temperature = 0.5
    rollout.multi_turn = {{"max_steps": 25, "max_sample_per_task": unknown()}}
    trainer = ajet_job.config.ajet.trainer_common
    trainer.save_freq = 10 ** 9
    if cfg.grpo_n > 4:
        trainer.test_freq = 3
    return ajet_job
{rest}
"""


def cocktail(tmp_path: Path, more: str = "", rest: str = "") -> Source:
    script(tmp_path, COCKTAIL_CONFIG, "tutorial/cocktail/settings.py")
    return read_source(script(tmp_path, COCKTAIL_CLIENT.format(more=more, rest=rest), "tutorial/cocktail/client_0.py"))


def test_a_config_class_in_a_neighbouring_file(tmp_path: Path) -> None:
    source = cocktail(tmp_path)
    assert (source.config[REPEAT], source.config[BATCH], source.config[WORKERS]) == (8, 32, 512)
    assert source.config["ajet.rollout.compute_madness_checklist"] == ["nonsense"]
    assert source.provenance[WORKERS].kwarg == "max_env_worker"
    assert "what is passed as cfg may differ" in source.provenance[WORKERS].note


@pytest.mark.parametrize(
    ("statement", "expression"),
    [
        ("import settings", "settings.N"),
        ("import settings as s", "s.N"),
        ("import lab.settings", "lab.settings.N"),
        ("from lab import settings", "settings.N"),
        ("from lab.settings import N as n", "n"),
        ("from . import settings", "settings.N"),
        ("from .settings import N", "N"),
        ("from .. import settings", "settings.N"),
        ("from lab import N", "N"),
    ],
)
def test_forms_of_imports(tmp_path: Path, statement: str, expression: str) -> None:
    script(tmp_path, "N = 8\n", "settings.py")
    script(tmp_path, "from lab.settings import N\n", "lab/__init__.py")
    script(tmp_path, "N = 8\n", "lab/settings.py")
    text = f"from ajet import AgentJetJob\n{statement}\njob = AgentJetJob(num_repeat={expression})\n"
    assert read_source(script(tmp_path, text, "lab/train.py")).config[REPEAT] == 8


@pytest.mark.parametrize(
    "statement", ["from ..... import N", "from ajet import N", "import numpy as N", "from .gone import N"]
)
def test_imports_that_lead_nowhere(tmp_path: Path, statement: str) -> None:
    text = f"from ajet import AgentJetJob\n{statement}\njob = AgentJetJob(num_repeat=N)\n"
    assert REPEAT not in read_source(script(tmp_path, text)).config


def test_a_class_that_two_files_import_is_one_class(tmp_path: Path) -> None:
    script(tmp_path, "class C:\n    n = 8\n", "settings.py")
    script(tmp_path, "from settings import C\ndef make():\n    return C()\n", "maker.py")
    text = "from ajet import AgentJetJob\nfrom settings import C\nfrom maker import make\n"
    text += "def change():\n    c = make()\n    c.n = 4\n\njob = AgentJetJob(num_repeat=C().n)\n"
    assert REPEAT not in read_source(script(tmp_path, text)).config


def test_what_a_neighbouring_file_changes_is_not_guessed(tmp_path: Path) -> None:
    script(tmp_path, "class C:\n    n = 8\ndef make():\n    c = C()\n    c.n = 4\n    return c\n", "maker.py")
    text = "from ajet import AgentJetJob\nfrom maker import make\njob = AgentJetJob(num_repeat=make().n)\n"
    assert REPEAT not in read_source(script(tmp_path, text)).config


def test_what_is_passed_to_a_neighbouring_file_counts(tmp_path: Path) -> None:
    script(
        tmp_path,
        "class C:\n    def __init__(self, n=4):\n        self.n = n * 2\ndef make(n=1): return C(n)\n",
        "maker.py",
    )
    text = "from ajet import AgentJetJob\nfrom maker import C, make\n"
    text += "job = AgentJetJob(num_repeat=C(8).n, batch_size=make(16).n)\n"
    config = read_source(script(tmp_path, text)).config
    assert (config[REPEAT], config[BATCH]) == (16, 32)


def test_files_that_import_each_other(tmp_path: Path) -> None:
    script(tmp_path, "from b import N\n", "a.py")
    script(tmp_path, "from a import N\n", "b.py")
    text = "from ajet import AgentJetJob\nfrom a import N\njob = AgentJetJob(num_repeat=N)\n"
    assert REPEAT not in read_source(script(tmp_path, text)).config


def test_a_config_class_that_a_function_fills(tmp_path: Path) -> None:
    source = cocktail(tmp_path, ", config_from_env", "def main():\n    build(config_from_env())\n")
    assert source.config[WORKERS] == 512
    assert source.provenance[WORKERS].note == ""
    reason = source.unknown_reason("ajet.experiment_name")
    assert reason is not None
    assert "changed at settings.py:18" in reason.reason


def test_writes_through_aliases_are_followed(tmp_path: Path) -> None:
    source = cocktail(tmp_path)
    assert source.config["ajet.rollout.temperature"] == 0.5
    assert source.config["ajet.trainer_common.save_freq"] == 10**9
    assert source.provenance["ajet.rollout.temperature"].layer == "write"
    assert source.provenance["ajet.rollout.temperature"].line == 14


def test_a_section_that_is_replaced_gets_the_engines_defaults(tmp_path: Path) -> None:
    source = cocktail(tmp_path)
    assert source.config["ajet.rollout.multi_turn.max_steps"] == 25
    assert source.config["ajet.rollout.multi_turn.expected_steps"] == 1
    assert "ajet.rollout.multi_turn.max_sample_per_task" not in source.config


def test_a_write_under_a_condition_is_unknown(tmp_path: Path) -> None:
    source = cocktail(tmp_path)
    assert "ajet.trainer_common.test_freq" not in source.config
    reason = source.unknown_reason("ajet.trainer_common.test_freq")
    assert reason is not None
    assert "under a condition" in reason.reason


WRITES = [
    ("job.config.ajet.rollout.top_k = 5", 5),
    ("job.config['ajet']['rollout']['top_k'] = 5", 5),
    ("cfg = job.config.ajet\ncfg.rollout.top_k = 5", 5),
    ("setattr(job.config.ajet.rollout, 'top_k', 5)", 5),
    ("job.config.ajet.rollout.top_k = 4\njob.config.ajet.rollout.top_k = 5", 5),
    ("with open('x') as f:\n    job.config.ajet.rollout.top_k = 5", 5),
    ("job.config.ajet.rollout.top_k += 5", None),
    ("for k in [1]:\n    job.config.ajet.rollout.top_k = k", None),
    ("job.config.ajet.rollout.update(top_k=5)", None),
    ("del job.config.ajet.rollout.top_k", None),
    ("job.config.ajet.rollout.top_k = input()", None),
    ("if x:\n    r = job.config.ajet.rollout\n    r.top_k = 5", None),
    ("r = job.config.ajet.rollout\nif x:\n    r = y\nr.top_k = 5", None),
    ("job.config.ajet.rollout.top_k = input()\njob.config.ajet.rollout.top_k = 5", 5),
    ("setattr(job.config.ajet.rollout, input(), 5)", None),
    ("job.config = load()", None),
    ("job.config.ajet = load()", None),
    ("job = other()\njob.config.ajet.rollout.top_k = 5", -1),
    ("x = job.config.ajet.rollout\nx = {}\nx.top_k = 5", -1),
]


@pytest.mark.parametrize(("writes", "expected"), WRITES)
def test_forms_of_writes(tmp_path: Path, writes: str, expected: int | None) -> None:
    source = read_source(script(tmp_path, f"from ajet import AgentJetJob\njob = AgentJetJob()\n{writes}\n"))
    if expected is None:
        assert source.unknown_reason("ajet.rollout.top_k") is not None
    else:
        assert source.config["ajet.rollout.top_k"] == expected


def test_writes_where_the_job_is_returned_to(tmp_path: Path) -> None:
    source = read_source(
        script(
            tmp_path,
            """
            import ajet
            def build():
                job = ajet.AgentJetJob(num_repeat=8)
                return job
            mine = build()
            mine.config.ajet.rollout.top_k = 5
            """,
        )
    )
    assert (source.config[REPEAT], source.config["ajet.rollout.top_k"]) == (8, 5)


def test_writes_to_a_job_that_is_an_attribute(tmp_path: Path) -> None:
    source = read_source(
        script(
            tmp_path,
            """
            from ajet import AgentJetJob as Job
            class Trainer:
                def __init__(self, n: int = 8):
                    self.job = Job(num_repeat=n)
                    self.job.config.ajet.rollout.top_k = 5
                def tune(self):
                    self.job.config.ajet.rollout.temperature = 0.1
            """,
        )
    )
    assert source.config["ajet.rollout.top_k"] == 5
    reason = source.unknown_reason("ajet.rollout.temperature")
    assert reason is not None
    assert "another method" in reason.reason


@pytest.mark.parametrize(
    ("call", "expected"), [("tweak(job)", 5), ("tweak(job=job)", 5), ("if x:\n    tweak(job)", None)]
)
def test_a_function_that_the_job_is_passed_to(tmp_path: Path, call: str, expected: int | None) -> None:
    text = "from ajet import AgentJetJob\ndef tweak(job):\n    job.config.ajet.rollout.top_k = 5\n"
    source = read_source(script(tmp_path, f"{text}job = AgentJetJob()\n{call}\n"))
    assert source.config.get("ajet.rollout.top_k") == expected


def test_a_function_that_a_part_is_passed_to(tmp_path: Path) -> None:
    text = "from ajet import AgentJetJob\ndef tweak(r, k):\n    r.top_k = k\n    tweak(r, k)\n"
    source = read_source(script(tmp_path, f"{text}job = AgentJetJob()\ntweak(job.config.ajet.rollout, 5)\n"))
    assert source.unknown_reason("ajet.rollout.top_k") is not None or source.config["ajet.rollout.top_k"] == 5


def test_set_data_and_set_workflow_are_writes(tmp_path: Path) -> None:
    text = "from ajet import AgentJetJob\njob = AgentJetJob()\n"
    text += "job.set_data('hf', 'openai/gsm8k', validation_split='v')\njob.set_workflow('a.b->C')\n"
    config = read_source(script(tmp_path, text)).config
    assert config["ajet.task_reader.type"] == "huggingface_dat_repo"
    assert config["ajet.task_reader.huggingface_dat_repo.dataset_path"] == "openai/gsm8k"
    assert config["ajet.task_reader.huggingface_dat_repo.validation_split"] == "v"
    assert config["ajet.rollout.user_workflow"] == "a.b->C"


def test_positional_and_spread_kwargs(tmp_path: Path) -> None:
    text = """
    from ajet import AgentJetJob
    common = dict(n_gpu=4, logging="swanlab")
    common["max_num_seqs"] = 10
    job = AgentJetJob(False, None, "/d", **common, **{"num_repeat": 8})
    """
    config = read_source(script(tmp_path, text)).config
    assert config["ajet.experiment_dir"] == "/d"
    assert config["ajet.trainer_common.n_gpus_per_node"] == 4
    assert config["ajet.trainer_common.logger"] == "swanlab"
    assert (config["ajet.rollout.max_num_seqs"], config[REPEAT]) == (10, 8)


def test_kwargs_from_nowhere_make_every_other_kwarg_unknown(tmp_path: Path) -> None:
    text = "from ajet import AgentJetJob\njob = AgentJetJob(num_repeat=8, **load())\n"
    text += "job.config.ajet.data.train_batch_size = 3\n"
    source = read_source(script(tmp_path, text))
    assert (source.config[REPEAT], source.config[BATCH]) == (8, 3)
    assert WORKERS not in source.config
    assert source.config["ajet.rollout.temperature"] == 0.9


def test_a_write_settles_an_unknown_kwarg(tmp_path: Path) -> None:
    text = (
        "from ajet import AgentJetJob\njob = AgentJetJob(num_repeat=input())\njob.config.ajet.rollout.num_repeat = 8\n"
    )
    source = read_source(script(tmp_path, text))
    assert (source.config[REPEAT], source.unknown) == (8, [])


def test_none_leaves_the_yaml(tmp_path: Path) -> None:
    text = "from ajet import AgentJetJob\nRANK = None\njob = AgentJetJob(num_repeat=None, lora_rank=RANK)\n"
    source = read_source(script(tmp_path, text))
    assert source.config[REPEAT] == 4
    assert source.provenance[REPEAT].layer == "default"


def test_the_base_file_is_found_from_above_the_script(tmp_path: Path) -> None:
    script(
        tmp_path,
        "ajet: {rollout: {num_repeat: 6}}\nhydra: {}\ndefaults: [ajet_swarm_default, _self_]\n",
        "conf/base.yaml",
    )
    text = "from ajet import AgentJetJob\njob = AgentJetJob(base_yaml_config='conf/base.yaml')\n"
    source = read_source(script(tmp_path, text, "deep/er/train.py"))
    assert source.config[REPEAT] == 6
    assert source.provenance[REPEAT].layer == "file"


def test_without_the_base_file_only_the_script_counts(tmp_path: Path) -> None:
    text = "from ajet import AgentJetJob\njob = AgentJetJob(base_yaml_config='gone.yaml', num_repeat=8)\n"
    source = read_source(script(tmp_path, text))
    assert source.config == {REPEAT: 8}
    reason = source.unknown_reason(WORKERS)
    assert reason is not None
    assert "gone.yaml is not found" in reason.reason


TWO = """
from ajet import AgentJetJob
small = AgentJetJob(experiment_name="seven", num_repeat=4)
big = AgentJetJob(experiment_name="fourteen", num_repeat=8)
"""


@pytest.mark.parametrize(
    ("job", "repeat"), [("1", 4), ("2", 8), ("small", 4), ("big", 8), ("seven", 4), ("fourteen", 8)]
)
def test_a_job_is_chosen_by_number_variable_or_experiment(tmp_path: Path, job: str, repeat: int) -> None:
    path = script(tmp_path, TWO)
    assert read_source(path, job).config[REPEAT] == repeat
    assert read_source(f"{path}#{job}").config[REPEAT] == repeat


def test_several_jobs_must_be_chosen_from(tmp_path: Path) -> None:
    path = script(tmp_path, TWO)
    assert [source.config[REPEAT] for source in read_sources(path)] == [4, 8]
    with pytest.raises(BadInput, match=r"2 AgentJetJob calls: 1 = small \(line 3\), 2 = big \(line 4\)"):
        read_source(path)
    with pytest.raises(BadInput, match="fits none"):
        read_source(path, "3")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.py", "x = 1\n", "has no AgentJetJob"),
        ("a.py", "def f(:\n", "a.py:1:7: not valid Python"),
        ("a.py", "x = '\x00'", "a.py"),
        ("a.py", "x = " + "(" * 10_000, "a.py"),
        ("a.txt", "x", "neither YAML nor a script"),
    ],
)
def test_a_file_that_is_no_script_is_told(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_source(script(tmp_path, text, name))


def test_missing_files_are_told(tmp_path: Path) -> None:
    for name in ("gone.py", "gone.yaml", "gone"):
        with pytest.raises(BadInput, match="there is no such file"):
            read_source(tmp_path / name)
    with pytest.raises(BadInput, match="two sets of defaults"):
        read_source("default:none")


def test_every_job_of_a_script_has_its_line(tmp_path: Path) -> None:
    assert [(job.number, job.name, job.line) for job in read_jobs(script(tmp_path, TWO))] == [
        (1, "small", 3),
        (2, "big", 4),
    ]


LITERALS = st.fixed_dictionaries(
    {},
    optional={
        "project_name": st.text(max_size=5),
        "model": st.text(max_size=5),
        "n_gpu": st.integers(-5, 99),
        "nnodes": st.integers(0, 3),
        "num_repeat": st.integers(1, 99),
        "max_env_worker": st.integers(1, 999),
        "swarm_mode": st.booleans(),
        "lr": st.floats(1e-9, 1),
        "use_kl_loss": st.booleans(),
        "compute_madness_checklist": st.lists(st.sampled_from(["nonsense", "non_ascii"]), max_size=2),
        "total_training_steps": st.none() | st.integers(1, 9),
    },
)


@settings(max_examples=40, deadline=None)
@given(kwargs=LITERALS, top_k=st.integers(-1, 9))
def test_reading_a_script_gives_what_running_it_gives(
    tmp_path_factory: pytest.TempPathFactory, kwargs: dict[str, Any], top_k: int
) -> None:
    given_kwargs = ", ".join(f"{name}={value!r}" for name, value in kwargs.items())
    text = f"from ajet import AgentJetJob\njob = AgentJetJob({given_kwargs})\njob.config.ajet.rollout.top_k = {top_k}\n"
    source = read_source(script(tmp_path_factory.mktemp("script"), text))
    job = AgentJetJob(**kwargs)
    job.config.ajet.rollout.top_k = top_k
    assert source.tree.to_dict() == job.config.to_dict()
    assert list(source.config) == list(job.config.flat())


NUMBERS = st.recursive(
    st.integers(-20, 20).map(str) | st.sampled_from(["N", "C.n", "c.m", "D['k']", "len('abc')", "f(2)", "0.5"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "<", "==", "or", "and"]), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} if {parts[1]} else {parts[2]})"),
        inner.map(lambda one: f"(-{one})"),
        inner.map(lambda one: f"(not {one})"),
        st.lists(inner, min_size=1, max_size=3).map(lambda items: f"max([{', '.join(items)}])"),
        inner.map(lambda one: f"int({one})"),
    ),
    max_leaves=8,
)

WORLD = """
N = 8
class C:
    n = N * 2
    def __init__(self, m=3):
        self.m = m + 1
c = C(4)
D = dict(k=5)
def f(x, y=3):
    return x * y
"""


@settings(max_examples=150, deadline=None)
@given(expression=NUMBERS)
def test_what_is_read_off_is_what_python_computes(tmp_path_factory: pytest.TempPathFactory, expression: str) -> None:
    text = f"from ajet import AgentJetJob\n{WORLD}\njob = AgentJetJob(num_repeat={expression})\n"
    source = read_source(script(tmp_path_factory.mktemp("script"), text))
    world: dict[str, Any] = {}
    exec(WORLD, world)
    try:
        expected = eval(expression, world)
    except (ZeroDivisionError, TypeError):
        assert REPEAT not in source.config
        return
    assert (source.config[REPEAT], type(source.config[REPEAT])) == (expected, type(expected))
