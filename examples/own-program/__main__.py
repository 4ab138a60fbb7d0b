"""Your own program with Kiln's gate: hosts you already have, and something that must not exist before they are good.

    pulumi stack init dev
    pulumi config set --path 'hosts[0].name' node-0
    pulumi config set --path 'hosts[0].address' 192.0.2.10
    pulumi config set --path 'hosts[0].hostKey' "$(ssh-keyscan -t ed25519 192.0.2.10 | cut -d' ' -f2-)"
    pulumi config set --secret privateKey < ~/.ssh/id_ed25519
    pulumi up

The three parts: ``begin`` first, ``HealthGate`` over the hosts, ``conclude`` last. ``Healthy`` is for what must wait.
"""

import pulumi

from stacks.gate import GateHost, HealthGate, Healthy, SshKey, begin, conclude

begin()

config = pulumi.Config()
private_key = config.require_secret("privateKey")

hosts = [
    GateHost(
        name=host["name"],
        address=host["address"],
        instance_type=config.require("instanceType"),
        user=config.require("user"),
        port=config.require_int("port"),
        private_key=private_key,
        host_key=host["hostKey"],  # compare it with the host's own before you trust what ssh-keyscan saw
    )
    for host in config.require_object("hosts")
]

gate = HealthGate(
    "gate", hosts=hosts, burn_in=config.require("burnIn"), evidence_root=config.require("evidenceRoot"), deadline_s=300
)

# Depending on the gate would wait for nothing: it records its verdict and succeeds. Healthy fails while it is closed.
healthy = Healthy("healthy", gate)

# Whatever must wait for good hosts: a job, a DNS record, a load balancer's target. Here, a key for the job's users.
job_key = SshKey("job-key", opts=pulumi.ResourceOptions(depends_on=[healthy]))

conclude(gate, {"jobKey": job_key.public_key})
