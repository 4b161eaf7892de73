//! One file per magic, one table.
