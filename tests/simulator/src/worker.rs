//! Simulated workers: the real session client over machines in memory.
