"""What can go wrong in the emulated cloud, each as one line for the user.

::

    CloudError (profiles.errors)
    |-- SandboxDownError   no sandbox is running, or it went away
    |-- AwsError           a refusal in AWS's words: code and message
    |-- CancelledError     the engine asked the provider to stop
    `-- InitError          made, but not ready: the engine must keep it in its state
"""

from __future__ import annotations

from profiles.errors import CloudError
from sandbox.cloud.values import Properties


class SandboxDownError(CloudError):
    """No sandbox is running at ``home``, or it stopped answering."""

    def __init__(self, home: str, reason: str) -> None:
        super().__init__(f"the sandbox at {home} is not running ({reason}): start it with `kiln sandbox start`")


class AwsError(CloudError):
    """A refusal as the real provider shows it: ``operation error EC2: RunInstances, api error CODE: message``.

    ``code`` is AWS's error code, such as ``InsufficientInstanceCapacity``; ``text`` is AWS's message alone.
    """

    def __init__(self, code: str, text: str, *, action: str = "") -> None:
        operation = f"operation error EC2: {action}, " if action else ""
        super().__init__(f"{operation}api error {code}: {text}")
        self.code = code
        self.text = text
        self.action = action


class CancelledError(CloudError):
    """The engine asked the provider to stop, so a wait was given up."""

    def __init__(self, what: str) -> None:
        super().__init__(f"cancelled while {what}")


class InitError(CloudError):
    """The resource exists but is not ready; its id and properties go to the engine with the reason."""

    def __init__(self, resource_id: str, properties: Properties, inputs: Properties, reason: str) -> None:
        super().__init__(reason)
        self.resource_id = resource_id
        self.properties = properties
        self.inputs = inputs
