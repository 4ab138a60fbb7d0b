"""Simulated GPU hosts: machine descriptions, rendered evidence, faults by name, an SSH server. A simulator, no more."""
