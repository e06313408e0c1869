"""Tasks from files, folders, and out of nothing."""

from __future__ import annotations

import json
import socket

import pytest
import yaml

from ajet.default_config.ajet_config_schema import (
    AjetTaskReader,
    HuggingfaceDatRepo,
    JsonlDatasetFile,
    JsonlTrainingFp,
)
from ajet.task_reader import RouterTaskReader
from ajet.task_reader.hf_reader import read_dataset
from ajet.utils.config_utils import load_config

ROWS = [{"question": f"q{n}", "answer": str(n)} for n in range(20)]


def hf(path, split="train", name=None) -> RouterTaskReader:
    section = HuggingfaceDatRepo(dataset_path=str(path), dataset_name=name, training_split=split)
    return RouterTaskReader("huggingface_dat_repo", AjetTaskReader(huggingface_dat_repo=section))


def jsonl(path) -> RouterTaskReader:
    section = JsonlDatasetFile(training=JsonlTrainingFp(file_path=str(path)))
    return RouterTaskReader("jsonl_dataset_file", AjetTaskReader(type="jsonl_dataset_file", jsonl_dataset_file=section))


def test_jsonl_rows_become_tasks_in_file_order(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text(
        '{"main_query": "q", "task_id": 7, "metadata": {"a": 1}, "init_messages": [{"role": "user", "content": "x"}]}\n'
        '\n{"other": 2}\n'
    )
    first, second = jsonl(path).generate_training_tasks()
    assert (first.main_query, first.task_id, first.metadata, first.env_type) == ("q", "7", {"a": 1}, "no_env")
    assert first.init_messages == [{"role": "user", "content": "x"}]
    assert (second.main_query, second.task_id, second.metadata) == ("[not defined]", "task_1", {"other": 2})
    assert {task.task_id for task in jsonl(path).get_training_tasks()} == {"7", "task_1"}


@pytest.mark.parametrize(
    ("content", "says"),
    [('{"a": 1}\n{"a": \n', ":2:"), ("[1]\n", "list where a JSON object"), ("\n", "no rows"), (None, "cannot be read")],
)
def test_a_jsonl_file_that_cannot_be_used_is_named_with_its_line(tmp_path, content, says):
    path = tmp_path / "train.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=says) as caught:
        list(jsonl(path).generate_training_tasks())
    assert str(path) in str(caught.value)


def write_parquet(path):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)


def write_jsonl(path):
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def write_csv(path):
    path.write_text("question,answer\n" + "".join(f"{row['question']},{row['answer']}\n" for row in ROWS))


def write_json(path):
    path.write_text(json.dumps(ROWS))


def write_arrow(path):
    import pyarrow

    table = pyarrow.Table.from_pylist(ROWS)
    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("train.jsonl", write_jsonl),
        ("data/train-00000-of-00001.parquet", write_parquet),
        ("train.csv", write_csv),
        ("train.json", write_json),
        ("train/data-00000-of-00001.arrow", write_arrow),
        ("main/train-00000-of-00001.parquet", write_parquet),
    ],
)
def test_a_dataset_folder_is_read_by_split_whatever_its_format(tmp_path, name, write):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    write(tmp_path / name)
    other = tmp_path / "test.jsonl"
    other.write_text('{"question": "other split"}\n')
    tasks = list(hf(tmp_path, name="main").generate_training_tasks())
    assert sorted(task.main_query for task in tasks) == sorted(row["question"] for row in ROWS)
    by_id = {task.task_id: task for task in tasks}
    assert by_id["3"].metadata == {**ROWS[3], "original_idx": 3}
    assert by_id["3"].env_type == "no_env"


def test_each_pass_over_a_dataset_has_its_own_order(tmp_path):
    write_jsonl(tmp_path / "train.jsonl")
    reader = hf(tmp_path)
    orders = {tuple(task.task_id for task in reader.generate_training_tasks()) for _ in range(4)}
    assert len(orders) > 1


def test_a_single_parquet_file_is_a_dataset(tmp_path):
    write_parquet(tmp_path / "anything.parquet")
    assert len(hf(tmp_path / "anything.parquet").get_training_tasks()) == 20


def test_a_json_file_without_rows_is_named(tmp_path):
    (tmp_path / "train.json").write_text("3")
    with pytest.raises(ValueError, match=r"train\.json cannot be read: expected a list of objects"):
        read_dataset(str(tmp_path / "train.json"), "train")


def test_a_missing_split_says_what_is_there(tmp_path):
    write_jsonl(tmp_path / "train.jsonl")
    write_jsonl(tmp_path / "test.jsonl")
    with pytest.raises(ValueError, match=r"no split 'dev'.*test\.jsonl, train\.jsonl"):
        hf(tmp_path, split="dev").get_training_tasks()


def test_a_hub_name_without_network_says_what_to_do(monkeypatch):
    def no_network(*_args, **_kwargs):
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "create_connection", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    reader = hf("openai/gsm8k", name="main")  # nothing is read before the first task is asked for
    with pytest.raises(ValueError, match="--dummy-data") as caught:
        next(iter(reader.generate_training_tasks()))
    assert "openai/gsm8k" in str(caught.value)


@pytest.mark.parametrize(
    ("dataset", "columns"),
    [
        ("openai/gsm8k", {"question", "answer"}),
        ("/data/HuggingFaceH4_MATH-500", {"problem", "solution", "answer", "subject", "level", "unique_id"}),
        ("someone/unheard-of", {"question", "answer", "main_query"}),
    ],
)
def test_dummy_data_has_the_shape_of_the_dataset(monkeypatch, dataset, columns):
    monkeypatch.setenv("AJET_DUMMY_DATA", "1")
    tasks = hf(dataset).get_training_tasks()
    assert len(tasks) == 1000
    assert columns <= set(tasks[0].metadata)
    assert tasks[0].main_query != "Empty"
    assert len({task.task_id for task in tasks}) == 1000


def test_dummy_gsm8k_answers_are_right(monkeypatch):
    monkeypatch.setenv("AJET_DUMMY_DATA", "1")
    for task in list(hf("gsm8k").generate_training_tasks())[:20]:
        numbers = [int(word) for word in task.metadata["question"].split() if word.isdigit()]
        assert task.metadata["answer"].split("#### ")[1] == str(sum(numbers))


def test_random_dummy_is_the_same_thousand_tasks_each_time():
    first, second = (list(RouterTaskReader("random_dummy", AjetTaskReader()).generate_training_tasks()) for _ in "ab")
    assert first == second
    assert len(first) == 1000


def test_a_reader_takes_the_section_of_a_configuration_too(tmp_path):
    write_jsonl(tmp_path / "train.jsonl")
    section = {"type": "huggingface_dat_repo", "huggingface_dat_repo": {"dataset_path": str(tmp_path)}}
    config = load_config(yaml.safe_dump({"ajet": {"task_reader": section}}))
    section = config.get("ajet.task_reader")
    assert len(RouterTaskReader(section.type, section).get_training_tasks()) == 20


@pytest.mark.parametrize(("kind", "says"), [("nosuch", "expected one of"), ("env_service", "--dummy-data")])
def test_types_that_cannot_be_read_say_so(kind, says):
    with pytest.raises(ValueError, match=says):
        RouterTaskReader(kind, AjetTaskReader())


def test_services_are_replaced_by_dummy_tasks_on_request(monkeypatch):
    monkeypatch.setenv("AJET_DUMMY_DATA", "1")
    assert RouterTaskReader("env_service", AjetTaskReader()).get_training_tasks()
