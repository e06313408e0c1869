"""The address and key of one episode's language model, ready for OpenAI-compatible SDKs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from ajet.utils.loopback import is_loopback


class OpenaiBaseUrlAndApiKey(BaseModel):
    """What ``begin_episode`` returns: where to send the chat calls of this episode, and with which key."""

    base_url: str
    api_key: str
    model: str = "reserved_field"
    episode_uuid: str = ""

    def as_raw_openai_sdk_client(self, *_: Any, **__: Any) -> Any:
        """Return an ``openai.AsyncOpenAI`` for this episode; arguments are ignored, as released."""
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        if not self.base_url.startswith("http://"):
            return AsyncOpenAI(base_url=self.base_url, api_key=self.api_key)
        # one client per episode: without TLS there is no need to load all certificates of this machine each time
        return AsyncOpenAI(
            base_url=self.base_url,
            api_key=self.api_key,
            http_client=DefaultAsyncHttpxClient(verify=False, trust_env=not is_loopback(self.base_url)),
        )

    def as_agentscope_model(self, *_: Any, **__: Any) -> Any:
        """Return an AgentScope ``OpenAIChatModel`` for this episode; needs the agentscope package."""
        try:
            from agentscope.model import OpenAIChatModel
        except ImportError as error:
            raise ImportError(
                "as_agentscope_model() needs the agentscope package: pip install agentscope, "
                "or use base_url and api_key with any OpenAI-compatible SDK"
            ) from error
        return OpenAIChatModel(
            model_name="AgentJet-Model", api_key=self.api_key, client_args={"base_url": self.base_url}
        )
