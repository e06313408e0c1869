"""What a classic workflow is handed: models whose calls are recorded for training."""

from __future__ import annotations

from typing import Any

from ajet.tuner_lib.as_oai_baseurl_apikey import OpenaiBaseUrlAndApiKey


class AjetTuner:
    """The models of one episode.

    Each ``as_…`` method names the agent that asks and its target; a target outside the workflow's
    ``trainable_targets`` is served by the same engine, but its calls are not trained on.
    """

    def __init__(
        self,
        model: OpenaiBaseUrlAndApiKey,
        *,
        trainable_targets: list[str] | None = None,
        enable_interchange_server: bool = False,
        model_name: str = "",
    ) -> None:
        self._model = model
        self._trainable_targets = trainable_targets
        self._enable_interchange_server = enable_interchange_server
        self._model_name = model_name
        self.terminated = False
        self._sdk_clients: list[Any] = []

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(
            "the tuner is not a model; call tuner.as_raw_openai_sdk_client(), tuner.as_agentscope_model() "
            "or tuner.as_oai_baseurl_apikey() and use what they return"
        )

    def as_raw_openai_sdk_client(
        self,
        agent_name: str = "default_agent_name",
        target_tag: str = "default_target_tag",
        debug_model: str | None = "gpt-4o",
    ) -> Any:
        """Return an ``openai.AsyncOpenAI`` for this episode."""
        client = self._target(agent_name, target_tag).as_raw_openai_sdk_client()
        self._sdk_clients.append(client)
        return client

    def as_agentscope_model(
        self,
        agent_name: str = "default_agent_name",
        target_tag: str = "default_target_tag",
        debug_model: str | None = None,
    ) -> Any:
        """Return an AgentScope model for this episode. Raises ImportError without the agentscope package."""
        return self._target(agent_name, target_tag).as_agentscope_model()

    def as_oai_baseurl_apikey(
        self, agent_name: str = "default_agent_name", target_tag: str = "default_target_tag"
    ) -> OpenaiBaseUrlAndApiKey:
        """Return base URL and key of this episode's model. Raises RuntimeError unless the configuration offers them."""
        if not self._enable_interchange_server:
            raise RuntimeError(
                "as_oai_baseurl_apikey() needs ajet.enable_interchange_server: true in the configuration; "
                "a released AgentJet has no URL to give without it"
            )
        return self._target(agent_name, target_tag)

    def get_context_tracker(self) -> Any:
        """Raise NotImplementedError: the reference records calls in the engine and has no tracker object."""
        raise NotImplementedError(
            "the reference engine has no context tracker object; calls are recorded by the server"
        )

    def terminate_episode(self) -> None:
        """Note that the workflow gave its episode up: it is not trained on."""
        self.terminated = True

    async def close(self) -> None:
        """Close the SDK clients that were handed out, in the event loop that used them."""
        for client in self._sdk_clients:
            await client.close()
        self._sdk_clients.clear()

    def _target(self, agent_name: str, target_tag: str) -> OpenaiBaseUrlAndApiKey:
        from ajet.tuner_lib.experimental.episode_key import with_target

        key = with_target(self._model.api_key, agent_name, target_tag, trained=self.trains(target_tag))
        return self._model.model_copy(update={"api_key": key, "model": self._model_name or self._model.model})

    def trains(self, target_tag: str) -> bool:
        """Tell whether calls of this target are trained on."""
        return not self._trainable_targets or target_tag in self._trainable_targets
