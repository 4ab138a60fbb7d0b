"""The provider that runs the gate: resources ``kiln:index:SshKey``, ``HealthGate`` and ``Healthy``.

These tokens are kept in every stack's state and are never renamed.
"""
