"""The Pulumi program that ``main: stacks`` names."""

from stacks.program import run

run()
