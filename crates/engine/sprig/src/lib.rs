//! The template functions that Helm offers: Sprig and Helm's own.
