//! Jupyter messaging over ZeroMQ.
