"""Blueprints as people write them: loosely, in English and Chinese."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpack.blueprint.durations import BadDuration, format_duration, parse_duration
from skillpack.blueprint.model import Blueprint, parse_blueprint, read_blueprint
from skillpack.script import BadInput

SOURCE = Path("/plans/b.md")


def read(text: str) -> Blueprint:
    return parse_blueprint(text, SOURCE)


HEADINGS = """# My experiment
## exp_purpose
See if lr 1e-6 beats 5e-7.

More words; see [exp_yaml_path] for details.
### 2. Exp Codebase Dir
/my code/AgentJet
###### exp_venv_exe: `/venv/bin/python`
## exp_yaml_path
configs/a b.yaml
# exp_launch_command
```bash
$ cd x
ajet --conf ./configs/a.yaml \\
   --backbone verl
```
## exp_result_dir
/data/res dir
## exp_max_time
24h
## Remarks
be careful: output: yes
"""
BULLETS = """
- **exp_purpose**: See if lr 1e-6 beats 5e-7.
- exp_codebase_dir: /my code/AgentJet
* `exp_venv_exe` : /venv/bin/python
1. exp_yaml_path = "configs/a b.yaml"
- exp_launch_command: `ajet --conf ./configs/a.yaml`
- exp_result_dir: /data/res dir
- exp_max_time: at most 24 hours
"""
CHINESE = """
实验目的：看看学习率 1e-6 是否更好。
代码目录：/my code/AgentJet
虚拟环境： /venv/bin/python
配置文件：configs/a b.yaml
【启动命令】 `ajet --conf ./configs/a.yaml`
结果目录：/data/res dir
最长时间：24 小时
"""
SENTENCE = (
    "Please run this. [exp_purpose] See if it learns. [exp_codebase_dir] /my code/AgentJet, with [exp_venv_exe] "
    "/venv/bin/python and [exp_yaml_path] `configs/a b.yaml`; [exp_launch_command] `ajet --conf ./configs/a.yaml`, "
    "results in [exp_result_dir] `/data/res dir`, [exp_max_time] 24h."
)
TABLE = """
| field | value |
|---|---|
| exp_purpose | See if it learns. |
| exp_codebase_dir | /my code/AgentJet |
| exp_venv_exe | /venv/bin/python |
| exp_yaml_path | configs/a b.yaml |
| exp_launch_command | `ajet --conf ./configs/a.yaml` |
| exp_result_dir | /data/res dir |
| exp_max_time | 1 day |
"""
FRONTMATTER = """---
exp_purpose: See if it learns.
exp_codebase_dir: /my code/AgentJet
exp_venv_exe: /venv/bin/python
exp_yaml_path: configs/a b.yaml
exp_launch_command: |
  ajet --conf ./configs/a.yaml
exp_result_dir: /data/res dir
exp_max_time: 1440 min
---
"""
UNDERLINED = """
exp_purpose
===========
See if it learns.

exp_codebase_dir
----------------
/my code/AgentJet

exp_venv_exe
------------
/venv/bin/python (the tuned one)

exp_yaml_path
-------------
<configs/a b.yaml>

exp_launch_command
------------------
    ajet --conf ./configs/a.yaml

exp_result_dir
--------------
/data/res dir.

exp_max_time
------------
24:00:00
"""


@pytest.mark.parametrize(
    "text",
    [
        HEADINGS,
        BULLETS,
        CHINESE,
        SENTENCE,
        TABLE,
        FRONTMATTER,
        UNDERLINED,
        HEADINGS.replace("\n", "\r\n"),
        "\ufeff" + BULLETS,
    ],
    ids=["headings", "bullets", "chinese", "sentence", "table", "frontmatter", "underlined", "crlf", "bom"],
)
def test_every_way_of_writing_reads_the_same(text: str) -> None:
    blueprint = read(text)
    assert blueprint.problems == ()
    assert blueprint.codebase_dir == Path("/my code/AgentJet")
    assert blueprint.venv_exe == Path("/venv/bin/python")
    assert blueprint.yaml_path == Path("/my code/AgentJet/configs/a b.yaml")
    assert blueprint.result_dir == Path("/data/res dir")
    assert blueprint.max_time == 86400
    assert len(blueprint.commands) == 1
    assert "ajet --conf ./configs/a.yaml" in blueprint.commands[0]
    assert blueprint.mode == "classic"


def test_a_mention_in_a_sentence_is_no_field() -> None:
    blueprint = read(HEADINGS)
    assert blueprint.purpose.endswith("see [exp_yaml_path] for details.")
    assert "be careful: output: yes" in blueprint.notes


def test_code_is_never_read_as_fields() -> None:
    code = "```bash\necho exp_result_dir: /evil\n# exp_purpose\nrun me\n```"
    blueprint = read(f"# exp_launch_command\n{code}\n# exp_result_dir\n/good\n")
    assert blueprint.result_dir == Path("/good")
    assert "# exp_purpose" in blueprint.commands[0]


@pytest.mark.parametrize(
    "line",
    [
        "最长时间 exp_max_time：24 小时",
        "**上限（exp_max_time）**：24 小时",
        "- exp_max_time 最长时间: 24h",
        "| 最长时间/exp_max_time | 24h |",
    ],
)
def test_a_field_may_bear_two_of_its_names(line: str) -> None:
    assert parse_blueprint(f"exp_purpose: p\n{line}\n", Path("/x/b.md")).max_time == 86400


def test_home_and_variables_in_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("DISK", "/disk")
    blueprint = read("exp_codebase_dir: ~/code\nexp_result_dir: $DISK/r\nexp_yaml_path: ../x.yaml\n")
    assert blueprint.codebase_dir == Path("/home/me/code")
    assert blueprint.result_dir == Path("/disk/r")
    assert blueprint.yaml_path == Path("/home/me/x.yaml")


def test_a_remark_behind_a_path_is_cut_unless_it_belongs_to_the_name(tmp_path: Path) -> None:
    assert read("exp_result_dir: /r/x (on the big disk)").result_dir == Path("/r/x")
    odd = tmp_path / "x (on the big disk)"
    odd.mkdir()
    assert read(f"exp_result_dir: {odd}").result_dir == odd


def test_a_server_in_the_launch_command_makes_it_a_swarm_run() -> None:
    code = "```\nexport A=1\nnohup ajet-swarm start --swarm-port 10099 &\npython client.py --x 1\n```\n"
    blueprint = read(f"# exp_launch_command\n{code}")
    assert blueprint.mode == "swarm"
    assert blueprint.server_command == "export A=1\najet-swarm start --swarm-port 10099"
    assert blueprint.commands == ("export A=1\npython client.py --x 1",)


def test_clients_by_bullets_blocks_and_numbers() -> None:
    bullets = read("Server URL: gpu1:10086\n## exp_launch_command\n- `python a.py`\n- `python b.py`\n")
    assert (bullets.server_url, bullets.commands) == ("http://gpu1:10086", ("python a.py", "python b.py"))
    numbered = read(
        "server command: ajet-swarm start\nexp_launch_command_1: python a.py\nexp_launch_command_2: python b.py\n"
    )
    assert numbered.commands == ("python a.py", "python b.py")
    assert numbered.server_command == "ajet-swarm start"


def test_a_classic_script_of_several_blocks_is_one_command() -> None:
    assert read("# command\n```\ncd x\n```\nthen\n```\najet --conf ./a.yaml\n```\n").commands == (
        "cd x\najet --conf ./a.yaml",
    )


def test_what_is_missing_is_named() -> None:
    assert "exp_launch_command is missing" in read("exp_purpose: x\n").problems


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("24h", 86400),
        ("1.5 hours", 5400),
        ("90min", 5400),
        ("24 小时", 86400),
        ("1d 6h", 108000),
        ("1 day and 6 hours", 108000),
        ("1h30m", 5400),
        ("02:30:00", 9000),
        ("两个半小时", 9000),
        ("半小时", 1800),
        ("一天", 86400),
        ("3 个半小时", 12600),
        ("1小时30分钟", 5400),
        ("two and a half hours", 9000),
        ("half an hour", 1800),
        ("约 24 小时（硬性上限）", 86400),
        ("`10m`", 600),
        ("a week", 604800),
        ("不限", None),
        ("none", None),
        ("24 horas", 86400),
        ("2 Stunden", 7200),
        ("24時間", 86400),
        ("- 24h", 86400),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "24", "soon", "0h", "h", "-", "12 parsecs", "-3h", "at most -5 min", "-02:30:00"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadDuration):
        parse_duration(text)


@given(st.integers(min_value=1, max_value=10**7))
def test_a_written_duration_reads_back_within_its_precision(seconds: int) -> None:
    back = parse_duration(format_duration(seconds))
    assert back is not None
    assert abs(back - seconds) <= max(60, seconds * 0.05)


@given(st.text(max_size=400))
def test_no_text_breaks_the_reader(text: str) -> None:
    read(text)
    read(f"# exp_launch_command\n{text}\nexp_max_time: {text}\n[exp_result_dir] {text}")


@pytest.mark.parametrize("content", [b"", b"just words\n", b"\xff\xfe\x00bad", b"# a\n" * 400_000])
def test_what_is_no_blueprint_is_bad_input(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "b.md"
    path.write_bytes(content)
    with pytest.raises(BadInput):
        read_blueprint(path)
