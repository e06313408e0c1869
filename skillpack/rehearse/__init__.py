"""Run a training client against reference engines and say whether it would train."""
