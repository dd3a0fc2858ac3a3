//! journal-wal
