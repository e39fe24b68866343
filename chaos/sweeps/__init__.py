"""Sweeps: a declared matrix of runs, conducted one after the other, and what they show together."""
