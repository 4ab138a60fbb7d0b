"""Stub libraries of a simulated host, in C, and how they are built."""
