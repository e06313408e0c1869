"""What outlives an engine: the state after each step, checkpoints, and the journal of the open step."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ajet.tuner_lib.experimental.episode import CompletedEpisode
from ajet.utils.files import open_for_lines, replace_file

log = logging.getLogger(__name__)

LATEST = "latest_checkpointed_iteration.txt"


@dataclass
class RunState:
    """The last finished step of a run, its metrics, what its policy had learned, and the episodes since."""

    step: int = 0
    policy: dict[str, Any] | None = None
    metrics: dict[str, float] | None = None
    episodes: list[CompletedEpisode] = field(default_factory=list)


class RunStore:
    """The files of a run.

    ``<experiment>/state.json`` is replaced after each step, so a killed engine never goes back a
    step; ``<experiment>/journal.jsonl`` has a line for each completed episode of the open step;
    ``<checkpoints>/global_step_<n>/`` is written every ``save_freq`` steps, as a real run does.
    """

    def __init__(self, experiment_dir: Path, checkpoint_dir: Path) -> None:
        self.state_path = experiment_dir / "state.json"
        self.journal_path = experiment_dir / "journal.jsonl"
        self.checkpoint_dir = checkpoint_dir
        self._journal = open_for_lines(self.journal_path)

    def load(self) -> RunState:
        """Return where the run stands: its state or its newest checkpoint, whichever is later.

        A file that cannot be read is warned of and passed over.
        """
        found = [one for one in (self._read(self.state_path), self._read(self._newest_checkpoint())) if one]
        state = max(found, key=lambda one: one.step, default=RunState())
        state.episodes = self._read_journal(state.step + 1)
        return state

    def record(self, step: int, episode: CompletedEpisode) -> None:
        """Add an episode to the journal; it survives the death of this process. Raises OSError."""
        self._journal.write(json.dumps({"step": step, "episode": episode.to_dict()}) + "\n")
        self._journal.flush()

    def finish_step(self, step: int, policy: dict[str, Any], metrics: dict[str, float]) -> None:
        """Note that ``step`` is done and empty the journal, in this order. Raises OSError."""
        replace_file(self.state_path, json.dumps({"step": step, "policy": policy, "metrics": metrics}))
        self._journal.truncate(0)

    def save_checkpoint(self, step: int, policy: dict[str, Any]) -> None:
        """Write ``global_step_<step>`` and then the file that names the newest. Raises OSError."""
        path = self.checkpoint_dir / f"global_step_{step}" / "actor" / "policy.json"
        replace_file(path, json.dumps({"step": step, "policy": policy}))
        replace_file(self.checkpoint_dir / LATEST, str(step))

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    def _newest_checkpoint(self) -> Path:
        try:
            step = (self.checkpoint_dir / LATEST).read_text(encoding="utf-8").strip()
        except OSError:
            step = "none"
        return self.checkpoint_dir / f"global_step_{step}" / "actor" / "policy.json"

    def _read(self, path: Path) -> RunState | None:
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return RunState(int(data["step"]), dict(data["policy"]), data.get("metrics"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s cannot be read (%s): passed over", path, error)
            return None

    def _read_journal(self, step: int) -> list[CompletedEpisode]:
        episodes: dict[str, CompletedEpisode] = {}
        for line in self.journal_path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
                if entry["step"] == step:
                    episode = CompletedEpisode.from_dict(entry["episode"])
                    episodes[episode.episode_uuid] = episode
            except (ValueError, KeyError, TypeError) as error:
                log.warning("a line of %s cannot be read (%s): passed over", self.journal_path, error)
        return list(episodes.values())
