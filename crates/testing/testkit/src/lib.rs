//! Starts and stops real control planes and peers on loopback for end-to-end tests.
