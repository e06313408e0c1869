"""The chat endpoints as the real OpenAI and Anthropic SDKs use them: sync, async, streaming."""

from __future__ import annotations

import asyncio
import json

import anthropic
import openai
import pytest

QUESTION = [{"role": "user", "content": "Add 3 and 4."}]
PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
TOOL = {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": PARAMETERS}}
PICTURE = "data:image/png;base64,iVBORw0KGgo="


@pytest.fixture
def running(episodes):
    """An engine that is ROLLING and a client of it."""
    return episodes()


@pytest.fixture
def model(running):
    """The address of a claimed episode's model."""
    return running.begin()[1]


def sync_client(model) -> openai.OpenAI:
    return openai.OpenAI(base_url=model.base_url, api_key=model.api_key, max_retries=0)


def test_a_completion_has_all_that_the_api_promises(model):
    with sync_client(model) as client:
        answer = client.chat.completions.create(
            model="m", messages=QUESTION, n=3, seed=1, logprobs=True, top_logprobs=2
        )
    assert len(answer.choices) == 3
    assert answer.object == "chat.completion"
    assert answer.model == "m"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    for choice in answer.choices:
        tokens = choice.logprobs.content
        assert "".join(token.token for token in tokens) == choice.message.content
        assert all(token.logprob <= 0 and token.top_logprobs for token in tokens)


def test_stop_and_max_tokens_cut_the_reply(model):
    with sync_client(model) as client:
        echo = [{"role": "user", "content": 'Say "one two three four five six seven eight".'}]
        whole = client.chat.completions.create(model="m", messages=echo, seed=7, temperature=0)
        text = whole.choices[0].message.content
        short = client.chat.completions.create(model="m", messages=echo, seed=7, temperature=0, max_tokens=1)
        assert short.choices[0].finish_reason == "length"
        assert short.usage.completion_tokens == 1
        assert text.startswith(short.choices[0].message.content)
        stopped = client.chat.completions.create(model="m", messages=echo, seed=7, temperature=0, stop=[text[2:4]])
        assert stopped.choices[0].message.content == text[: text.index(text[2:4])]
        assert stopped.choices[0].finish_reason == "stop"


def test_streaming_gives_the_same_text_in_pieces_and_usage_on_request(model):
    with sync_client(model) as client:
        ask = {"model": "m", "messages": QUESTION, "seed": 3}
        whole = client.chat.completions.create(**ask).choices[0].message.content
        chunks = list(client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage.total_tokens > 0
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    assert chunks[0].id.startswith("chatcmpl-")


def test_async_streams_run_side_by_side_in_one_episode(model, running):
    async def ask(client: openai.AsyncOpenAI) -> str:
        stream = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def ask_all() -> list[str]:
        async with model.as_raw_openai_sdk_client() as client:
            return await asyncio.gather(*(ask(client) for _ in range(8)))

    assert all(asyncio.run(ask_all()))
    (running,) = running.engine.pool()["running_episode_details"].values()
    assert running["llm_call_count"] == "8"


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "add"}}])
def test_a_tool_call_and_its_result_make_a_turn(model, choice):
    with sync_client(model) as client:
        first = client.chat.completions.create(model="m", messages=QUESTION, tools=[TOOL], tool_choice=choice)
        call = first.choices[0].message.tool_calls[0]
        assert first.choices[0].finish_reason == "tool_calls"
        assert call.function.name == "add"
        assert json.loads(call.function.arguments) == {"a": 3, "b": 4}
        result = {"role": "tool", "tool_call_id": call.id, "content": "7"}
        messages = [*QUESTION, first.choices[0].message.model_dump(exclude_none=True), result]
        answer = client.chat.completions.create(model="m", messages=messages, tools=[TOOL], tool_choice="none")
        assert answer.choices[0].message.content
        assert not answer.choices[0].message.tool_calls


def test_a_streamed_tool_call_comes_in_pieces_that_make_up_json(model):
    with sync_client(model) as client:
        stream = client.chat.completions.create(
            model="m", messages=QUESTION, tools=[TOOL], tool_choice="required", stream=True
        )
        deltas = [delta for chunk in stream for delta in chunk.choices[0].delta.tool_calls or []]
    assert deltas[0].function.name == "add"
    assert deltas[0].id.startswith("call_")
    assert json.loads("".join(delta.function.arguments or "" for delta in deltas)) == {"a": 3, "b": 4}
    assert len(deltas) > 2


def test_json_mode_answers_json(model):
    with sync_client(model) as client:
        for kind in ({"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}):
            answer = client.chat.completions.create(model="m", messages=QUESTION, response_format=kind)
            assert isinstance(json.loads(answer.choices[0].message.content), dict)


def test_images_are_accepted(model):
    content = [{"type": "text", "text": "Add 3 and 4."}, {"type": "image_url", "image_url": {"url": PICTURE}}]
    with sync_client(model) as client:
        assert client.chat.completions.create(model="m", messages=[{"role": "user", "content": content}]).choices


def test_models_are_listed(model):
    with sync_client(model) as client:
        assert [one.id for one in client.models.list()]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"api_key": "wrong"}, openai.AuthenticationError),
        ({"api_key": "sk-ajet-bm90IGpzb24="}, openai.AuthenticationError),
        ({"messages": "not a list"}, openai.BadRequestError),
        ({"temperature": -1}, openai.BadRequestError),
    ],
)
def test_refusals_are_the_errors_that_the_sdk_knows(model, running, change, error):
    ask = {"model": "m", "messages": QUESTION, **{key: value for key, value in change.items() if key != "api_key"}}
    with sync_client(model.model_copy(update={"api_key": change.get("api_key", model.api_key)})) as client:
        with pytest.raises(error) as caught:
            client.chat.completions.create(**ask)
        assert caught.value.message
    assert running.engine.get("/health")["status"] == "ok"


def test_a_refused_call_never_reaches_the_policy(model, running):
    before = running.engine.post("/replay_latest_llm_call").status_code
    running.client.abort_episode(model.episode_uuid)
    with (
        sync_client(model) as client,
        pytest.raises(openai.NotFoundError, match=r"not claimed|another client|not found"),
    ):
        client.chat.completions.create(model="m", messages=QUESTION)
    assert before == running.engine.post("/replay_latest_llm_call").status_code == 404


def test_a_prompt_that_is_too_long_is_told_as_released_servers_tell_it(model):
    from ajet.utils.message_utils import is_token_overflow_message

    with sync_client(model) as client:
        answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "word " * 20000}])
    assert answer.choices[0].finish_reason == "length"
    assert is_token_overflow_message(answer.choices[0].message.content)
    assert answer.usage is None


def anthropic_client(model, base_url: str = "") -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=base_url or model.base_url, api_key=model.api_key, max_retries=0)


ANTHROPIC_TOOL = {"name": "add", "description": "Adds.", "input_schema": PARAMETERS}


@pytest.mark.parametrize("suffix", ["/v1", ""])
def test_the_anthropic_sdk_works_with_and_without_v1_in_the_base_url(model, suffix):
    with anthropic_client(model, model.base_url.removesuffix("/v1") + suffix) as client:
        message = client.messages.create(
            model="m", max_tokens=100, messages=QUESTION, system=[{"type": "text", "text": "Add."}]
        )
        assert message.content[0].type == "text"
        assert message.stop_reason == "end_turn"
        assert message.usage.input_tokens > 0
        assert client.messages.count_tokens(model="m", messages=QUESTION).input_tokens > 0
        cut = client.messages.create(
            model="m",
            max_tokens=1,
            extra_body={"temperature": 0},
            messages=[{"role": "user", "content": 'Say "one two three four five six seven".'}],
        )
        assert cut.stop_reason == "max_tokens"


def test_the_anthropic_sdk_streams_text_and_tool_use(model):
    with anthropic_client(model) as client:
        with client.messages.stream(model="m", max_tokens=100, messages=QUESTION) as stream:
            text = "".join(stream.text_stream)
            assert stream.get_final_text() == text
        with client.messages.stream(
            model="m", max_tokens=100, messages=QUESTION, tools=[ANTHROPIC_TOOL], tool_choice={"type": "any"}
        ) as stream:
            message = stream.get_final_message()
    assert message.stop_reason == "tool_use"
    assert message.content[0].input == {"a": 3, "b": 4}


def test_an_anthropic_tool_result_makes_a_turn(model):
    with anthropic_client(model) as client:
        first = client.messages.create(
            model="m",
            max_tokens=100,
            messages=QUESTION,
            tools=[ANTHROPIC_TOOL],
            tool_choice={"type": "tool", "name": "add"},
        )
        use = first.content[0]
        messages = [
            *QUESTION,
            {"role": "assistant", "content": [use.model_dump()]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "7"}]},
        ]
        answer = client.messages.create(
            model="m", max_tokens=100, messages=messages, tools=[ANTHROPIC_TOOL], tool_choice={"type": "none"}
        )
    assert answer.content[0].type == "text"


def test_the_async_anthropic_sdk_works(model):
    async def ask() -> str:
        client = anthropic.AsyncAnthropic(base_url=model.base_url, api_key=model.api_key)
        async with client, client.messages.stream(model="m", max_tokens=50, messages=QUESTION) as stream:
            return await stream.get_final_text()

    assert asyncio.run(ask())


def test_anthropic_errors_are_the_ones_that_its_sdk_knows(model):
    wrong = model.model_copy(update={"api_key": "wrong"})
    with anthropic_client(wrong) as client, pytest.raises(anthropic.AuthenticationError):
        client.messages.create(model="m", max_tokens=10, messages=QUESTION)
    with anthropic_client(model) as client, pytest.raises(anthropic.BadRequestError):
        client.messages.create(model="m", max_tokens=-1, messages=QUESTION)


def test_the_responses_api_answers_continues_and_calls_tools(model):
    tool = {"type": "function", "name": "add", "description": "Adds.", "parameters": PARAMETERS, "strict": False}
    with sync_client(model) as client:
        first = client.responses.create(model="m", input="Add 3 and 4.", instructions="Be brief.")
        assert first.status == "completed"
        assert first.output_text
        second = client.responses.create(model="m", input="And 5 and 6?", previous_response_id=first.id)
        assert second.usage.input_tokens > first.usage.input_tokens - 5
        called = client.responses.create(model="m", input="Add 3 and 4.", tools=[tool], tool_choice="required")
        call = called.output[0]
        assert json.loads(call.arguments) == {"a": 3, "b": 4}
        items = [
            {"role": "user", "content": "Add 3 and 4."},
            {"type": "function_call", "call_id": call.call_id, "name": "add", "arguments": call.arguments},
            {"type": "function_call_output", "call_id": call.call_id, "output": "7"},
        ]
        assert client.responses.create(model="m", input=items).output_text
        with pytest.raises(openai.NotFoundError):
            client.responses.create(model="m", input="x", previous_response_id="resp_other")


def test_the_responses_api_streams(model):
    tool = {"type": "function", "name": "add", "parameters": PARAMETERS, "strict": False}
    with sync_client(model) as client:
        with client.responses.stream(model="m", input="Add 3 and 4.") as stream:
            text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
            assert stream.get_final_response().output_text == text
        with client.responses.stream(model="m", input="Add 3 and 4.", tools=[tool], tool_choice="required") as stream:
            assert stream.get_final_response().output[0].name == "add"


def test_calls_of_every_api_are_recorded_for_training(model, running):
    with sync_client(model) as client, anthropic_client(model) as other:
        client.chat.completions.create(model="m", messages=QUESTION)
        list(client.chat.completions.create(model="m", messages=QUESTION, stream=True))
        client.responses.create(model="m", input="Add 3 and 4.")
        other.messages.create(model="m", max_tokens=10, messages=QUESTION)
    ended = running.engine.end(model.episode_uuid, 1.0, running.client.client_uuid)
    assert ended.json() == {"success": True, "warning": ""}
    (path,) = running.engine.folder.rglob("journal.jsonl")
    assert len(json.loads(path.read_text())["episode"]["calls"]) == 4
