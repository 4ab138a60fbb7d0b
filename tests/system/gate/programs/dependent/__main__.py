"""A gate, a sibling that takes its time, and a resource that must wait for health."""

import pulumi

from stacks.gate import GateHost, HealthGate, Healthy, SshKey, begin, conclude

begin()
config = pulumi.Config()
key = SshKey("key")


def host(name: str) -> GateHost:
    return GateHost(
        name=name,
        address="127.0.0.1",
        instance_type=config.get("instanceType") or "p5.48xlarge",
        user="root",
        private_key=key.private_key,
        host_key=None if config.get_bool("keyless") else key.public_key,
    )


gate = HealthGate("gate", hosts=[host("node-0")], deadline_s=float(config.get("deadline") or 900))
sibling = HealthGate("sibling", hosts=[host("slow-0")])
healthy = Healthy("healthy", gate)
SshKey("dependent", opts=pulumi.ResourceOptions(depends_on=[healthy]))
conclude(gate, {"sibling": sibling.verdict})
