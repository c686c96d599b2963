//! Decrypting files that SOPS encrypted.
