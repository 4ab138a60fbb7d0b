"""Rules about the image."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.rules.base import Asked, Finding, found


def image_locked(asked: Asked) -> Iterator[Finding]:
    """The image's id for this region is in the lock file, so that every run starts the same bits."""
    settings = asked.settings
    if settings.provider != "aws" or asked.image is not None:
        return
    names = asked.lock.names("aws")
    if settings.image not in names:
        yield found(
            "image.locked",
            "image",
            settings.image,
            f"one of {', '.join(names)}",
            "Images are listed in images/lock.yaml.",
        )
        return
    parameter = asked.lock.parameter("aws", settings.image)
    fix = "Write the id into images/lock.yaml" + (
        f"; it comes from: aws ssm get-parameter --region {settings.region} --name {parameter}" if parameter else ""
    )
    yield found("image.locked", "image", settings.image, f"an id for {settings.region} in images/lock.yaml", f"{fix}.")


def image_architecture(asked: Asked) -> Iterator[Finding]:
    """The image runs on the type's processor."""
    if asked.settings.provider != "aws" or asked.image is None or asked.profile is None:
        return
    if asked.image.architecture != asked.profile.architecture:
        yield found(
            "image.architecture",
            "image",
            asked.settings.image,
            f"an image for {asked.profile.architecture}",
            f"This one is for {asked.image.architecture}.",
        )
