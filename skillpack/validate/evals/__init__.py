"""Run the scripts of skills the way their ``evals/scripts.yaml`` says, and name what is wrong."""

from skillpack.validate.evals.runner import CaseResult, run_scripts

__all__ = ["CaseResult", "run_scripts"]
