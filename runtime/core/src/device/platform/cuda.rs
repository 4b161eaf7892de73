//! NVIDIA GPUs, through XLA's CUDA plugin.
use super::plugin::{Platform, candidates};

pub static CUDA: Platform = Platform {
    name: "CUDA",
    candidates: || candidates("XLAZY_CUDA_PLUGIN", "cuda/xla_cuda_plugin.so"),
    options: || Ok(Vec::new()),
    flags: |_| Vec::new(),
    environment: &[],
    remedy: "Set XLAZY_CUDA_PLUGIN to the xla_cuda_plugin.so of the Python package jax-cuda12-pjrt.",
};
