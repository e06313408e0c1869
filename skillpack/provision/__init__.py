"""Take a bare machine to a verified AgentJet client or server.

A recipe (``recipes/*.yaml``) is data: questions, steps, needs. ``observe`` looks at the machine by
running commands, ``machine`` reads what they said, ``assess`` gives verdicts, ``plan`` chooses the
commands, ``apply`` runs them, ``verify`` proves the result.
"""
