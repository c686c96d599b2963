//! Helm's release records: the storage format, read and written as helm does.
