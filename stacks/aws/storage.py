"""The root volume of each host."""

from __future__ import annotations

import pulumi_aws as aws

from images.lock import Image
from stacks.settings import RootVolume


def root_volume(volume: RootVolume, image: Image) -> aws.ec2.LaunchTemplateBlockDeviceMappingArgs:
    """gp3 under the name that the image gives its root: under any other name it would be a second, empty disk."""
    return aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name=image.root_device,
        ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            volume_type="gp3",
            volume_size=volume.size_gib,
            iops=volume.iops,
            throughput=volume.throughput_mibps,
            encrypted="true",
            delete_on_termination="true",
        ),
    )
