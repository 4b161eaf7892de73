//! The subcommands of the `xlazy` binary.
