"""Pulumi provider plugins of this project."""
