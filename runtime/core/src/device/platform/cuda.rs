//! NVIDIA GPUs, through XLA's CUDA plugin: xlazy's own copy, or the one of a JAX for GPUs, whose NVIDIA libraries lie beside it.
use super::plugin::{Platform, bits, in_pythons, plugin_dirs, there, var};
use std::path::PathBuf;
use xlazy_pjrt::Value;

pub static CUDA: Platform = Platform {
    name: "CUDA",
    candidates: || places().into_iter().map(|(path, _)| path).collect(),
    // Memory is taken as it is needed, as PyTorch does: without a word XLA takes three quarters of the GPU at once, and a second
    // notebook finds none.
    options: || Ok(vec![("preallocate", Value::Bool(false))]),
    // Where the assembler and libdevice are the plugin finds out itself, from its place among the packages.
    flags: |_| Vec::new(),
    form: |program| program.into(),
    lacks: |operation| {
        let given = operation.contains("\"stablehlo.convolution\"").then(|| operation.rsplit("->").next()).flatten();
        given.and_then(bits).map(|_| {
            "XLA convolves no integers on a GPU. In float64 (`.double()`) whole numbers up to 2^53 stay exact; `%device CPU` \
             before the first tensor has them"
        })
    },
    environment: &[("TF_CPP_MIN_LOG_LEVEL", "3")],
    flags_of_several: &[],
    no_client: "Does `nvidia-smi` list the GPU, with a driver of 525 or later (580 for CUDA 13), and does CUDA_VISIBLE_DEVICES leave it visible? \
                TF_CPP_MIN_LOG_LEVEL=0 in the kernel's environment makes XLA say more",
    remedy: "Run `xlazy plugins install cuda12`, or set XLAZY_CUDA_PLUGIN to the xla_cuda_plugin.so of the Python package \
             jax-cuda12-pjrt or jax-cuda13-pjrt.",
};

/// The plugin among packages, for CUDA 12, which every driver in use takes, and for CUDA 13.
const LIBRARIES: [&str; 2] = ["jax_plugins/xla_cuda12/xla_cuda_plugin.so", "jax_plugins/xla_cuda13/xla_cuda_plugin.so"];

/// Every CUDA plugin that is there, with what names it; the first one is used.
pub fn places() -> Vec<(PathBuf, &'static str)> {
    let named = var("XLAZY_CUDA_PLUGIN").map(|p| (p, "XLAZY_CUDA_PLUGIN"));
    let own = plugin_dirs().into_iter().map(|d| (d.join("cuda12").join(LIBRARIES[0]), "xlazy plugins install cuda12"));
    there(named.into_iter().chain(own).chain(in_pythons(&LIBRARIES)).collect())
}

#[cfg(test)]
mod tests {
    use super::CUDA;

    #[test]
    fn what_a_gpu_does_not_convolve() {
        let of = |ty: &str| {
            format!(
                "%3 = \"stablehlo.convolution\"(%1, %2) {{…}} : (tensor<1x1x4x{ty}>, tensor<1x1x2x{ty}>) -> tensor<1x1x3x{ty}>"
            )
        };
        assert!(["i64", "ui8"].iter().all(|ty| (CUDA.lacks)(&of(ty)).is_some()));
        assert!(["f32", "bf16"].iter().all(|ty| (CUDA.lacks)(&of(ty)).is_none()));
        assert_eq!(
            (CUDA.lacks)("%3 = \"stablehlo.add\"(%1, %2) : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>"),
            None
        );
    }
}
