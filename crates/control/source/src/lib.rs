//! The source controllers: content comes in and becomes an artifact.
