//! Signatures of commits and artifacts: PGP, SSH, cosign.
