//! The ready plugins that can be fetched: from which wheels, with which hashes, and what of them is kept.

/// A Python package that brings a plugin, or libraries of one.
pub struct Wheel {
    pub package: &'static str,
    pub version: &'static str,
    pub megabytes: u64,
    pub file: &'static str,
    pub sha256: &'static str,
}

impl Wheel {
    /// The platforms that its name gives.
    pub fn platforms(&self) -> impl Iterator<Item = &'static str> {
        let tags = self.file.trim_end_matches(".whl").rsplit('-').next().unwrap_or_default();
        tags.split('.')
    }
}

/// A plugin that somebody has built and put into Python packages.
pub struct Ready {
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// The one with the plugin comes first.
    pub wheels: &'static [Wheel],
    /// What the folder takes on the disk, in MB.
    pub unpacked: u64,
    /// The folder of the wheels that becomes the plugin's, with a slash; empty where all do.
    pub root: &'static str,
    /// The PJRT library, below that folder, and its own hash: the same file may come from elsewhere.
    pub library: &'static str,
    pub sha256: &'static str,
    /// How the names begin of what is taken besides the library and the licences.
    pub take: &'static [&'static str],
    /// Links that the libraries need to find each other: where one is, and what it says.
    pub links: &'static [(&'static str, &'static str)],
    pub licence: &'static str,
    /// What is said before anything is fetched, and when it is there.
    pub before: &'static str,
    pub after: &'static str,
}

impl Ready {
    pub fn version(&self) -> &'static str {
        self.wheels[0].version
    }

    pub fn megabytes(&self) -> u64 {
        self.wheels.iter().map(|w| w.megabytes).sum()
    }

    pub fn size(&self) -> String {
        format!("{} MB, {} MB when unpacked", self.megabytes(), self.unpacked)
    }
}

pub const READY: &[Ready] = &[
    Ready {
        name: "cpu",
        title: "XLA's CPU plugin",
        wheels: &[Wheel {
            package: "fastatomstruct-xla-cpu",
            version: "2026.6.23",
            megabytes: 63,
            file: "fastatomstruct_xla_cpu-2026.6.23-py3-none-manylinux_2_27_x86_64.whl",
            sha256: "88b1c430b341b4bea40a37420311c9c75db6e22b46d2ff95b6986577bee6afe9",
        }],
        unpacked: 274,
        root: "fastatomstruct_xla_cpu/",
        library: "libpjrt_cpu.so",
        sha256: "0a0fe56ca17be9efc7b942e89e534e5e0ad4a0f1e369b66d27b62184509015b9",
        take: &[],
        links: &[],
        licence: "Apache-2.0, https://github.com/openxla/xla",
        before: "XLA's CPU plugin as zml/pjrt-artifacts builds it (manual-2026-06-23T00-20-00Z), under Apache-2.0.",
        after: "it has no profiler: `xlazy plugins install cpu-multi` builds one that has",
    },
    Ready {
        name: "tpu",
        title: "libtpu",
        wheels: &[Wheel {
            package: "libtpu",
            version: "0.0.51",
            megabytes: 205,
            file: "libtpu-0.0.51-cp311-cp311-manylinux_2_31_x86_64.whl",
            sha256: "ba67ddbfdbac61c8da1fafc26cd51b93e9fe4d298016e2882eb986b1718cba34",
        }],
        unpacked: 435,
        root: "libtpu/",
        library: "libtpu.so",
        sha256: "ad0b2a3bc5d4de96f653b3701aaed8769a691776ca0e14c791dcdca785d43e42",
        take: &["LICENSE", "THIRD_PARTY_NOTICES.txt"],
        links: &[],
        licence: "Google Cloud Platform Terms of Service, https://cloud.google.com/terms",
        before: "libtpu is Google's, under the Google Cloud Platform Terms of Service \
                 (https://cloud.google.com/terms); it is no part of xlazy, and by fetching it you accept its terms.",
        after: "compile for a TPU with %tpu v5e:1x1 EXPRESSION in a cell, or with `xlazy aot`",
    },
    Ready {
        name: "cuda12",
        title: "XLA's CUDA plugin",
        wheels: CUDA12,
        unpacked: 4400,
        // As in a folder of Python packages: the plugin looks for the libraries, the assembler and libdevice from where it lies.
        root: "",
        library: "jax_plugins/xla_cuda12/xla_cuda_plugin.so",
        sha256: "921aaa9c635255fb7b7a660d11c8f702c78a70e7f7d005d4f377c2dc5f0fede2",
        take: &[
            "nvidia/cublas/lib/",
            "nvidia/cuda_cupti/lib/libcupti.so",
            "nvidia/cuda_cupti/lib/libnvperf",
            "nvidia/cuda_nvcc/bin/",
            "nvidia/cuda_nvcc/nvvm/libdevice/",
            "nvidia/cuda_nvrtc/lib/libnvrtc.so",
            "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so",
            "nvidia/cuda_runtime/lib/libcudart.so",
            "nvidia/cudnn/lib/",
            "nvidia/cufft/lib/libcufft.so",
            "nvidia/cusolver/lib/libcusolver.so",
            "nvidia/cusparse/lib/",
            "nvidia/nccl/lib/libnccl.so",
            "nvidia/nvjitlink/lib/",
        ],
        // The plugin's own path (RPATH) has cusparse's folder and not this one.
        links: &[("nvidia/cusparse/lib/libcusolver.so.11", "../../cusolver/lib/libcusolver.so.11")],
        licence: "the plugin: Apache-2.0, https://github.com/openxla/xla; CUDA, cuDNN and NCCL: NVIDIA's, in the *.dist-info folders",
        before: "XLA's CUDA plugin is as JAX's project publishes it, under Apache-2.0. The libraries of CUDA 12, cuDNN and \
                 NCCL are NVIDIA's, under its licences (https://docs.nvidia.com/cuda/eula/, \
                 https://docs.nvidia.com/deeplearning/cudnn/backend/latest/reference/eula.html); they are no part of xlazy, \
                 and by fetching them you accept their terms.",
        after: "run on a GPU with PJRT_DEVICE=CUDA, or with %device CUDA before the first tensor; it needs NVIDIA's driver, \
                525 or later",
    },
];

/// The newest of CUDA 12's libraries that there were when the plugin came out.
const CUDA12: &[Wheel] = &[
    Wheel {
        package: "jax-cuda12-pjrt",
        version: "0.12.0.1",
        megabytes: 192,
        file: "jax_cuda12_pjrt-0.12.0.1-py3-none-manylinux_2_27_x86_64.whl",
        sha256: "5ec28e06198d094031c37590b4ea753ae8cde4879ab4b60baf40f0dffb673286",
    },
    Wheel {
        package: "nvidia-cuda-runtime-cu12",
        version: "12.9.79",
        megabytes: 3,
        file: "nvidia_cuda_runtime_cu12-12.9.79-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        sha256: "25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3",
    },
    Wheel {
        package: "nvidia-cublas-cu12",
        version: "12.9.3.13",
        megabytes: 581,
        file: "nvidia_cublas_cu12-12.9.3.13-py3-none-manylinux_2_27_x86_64.whl",
        sha256: "d7d51055f161b317c7105ddaae90e71eda059026074ffef93cf7cde2886bfe72",
    },
    Wheel {
        package: "nvidia-cuda-cupti-cu12",
        version: "12.9.79",
        megabytes: 11,
        file: "nvidia_cuda_cupti_cu12-12.9.79-py3-none-manylinux_2_25_x86_64.whl",
        sha256: "096bcf334f13e1984ba36685ad4c1d6347db214de03dbb6eebb237b41d9d934f",
    },
    Wheel {
        package: "nvidia-cuda-nvcc-cu12",
        version: "12.9.86",
        megabytes: 41,
        file: "nvidia_cuda_nvcc_cu12-12.9.86-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl",
        sha256: "5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0",
    },
    Wheel {
        package: "nvidia-cuda-nvrtc-cu12",
        version: "12.9.86",
        megabytes: 90,
        file: "nvidia_cuda_nvrtc_cu12-12.9.86-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl",
        sha256: "210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4",
    },
    Wheel {
        package: "nvidia-cudnn-cu12",
        version: "9.28.0.42",
        megabytes: 717,
        file: "nvidia_cudnn_cu12-9.28.0.42-py3-none-manylinux_2_27_x86_64.whl",
        sha256: "9ff58b7f36dacd0a93e89f8f2957b52466889217963701daa15e577317cfa375",
    },
    Wheel {
        package: "nvidia-cufft-cu12",
        version: "11.4.1.4",
        megabytes: 201,
        file: "nvidia_cufft_cu12-11.4.1.4-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        sha256: "c67884f2a7d276b4b80eb56a79322a95df592ae5e765cf1243693365ccab4e28",
    },
    Wheel {
        package: "nvidia-cusolver-cu12",
        version: "11.7.5.82",
        megabytes: 338,
        file: "nvidia_cusolver_cu12-11.7.5.82-py3-none-manylinux_2_27_x86_64.whl",
        sha256: "15da72d1340d29b5b3cf3fd100e3cd53421dde36002eda6ed93811af63c40d88",
    },
    Wheel {
        package: "nvidia-cusparse-cu12",
        version: "12.5.10.65",
        megabytes: 366,
        file: "nvidia_cusparse_cu12-12.5.10.65-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        sha256: "73060ce019ac064a057267c585bf1fd5a353734151f87472ff02b2c5c9984e78",
    },
    Wheel {
        package: "nvidia-nccl-cu12",
        version: "2.32.3",
        megabytes: 352,
        file: "nvidia_nccl_cu12-2.32.3-py3-none-manylinux_2_27_x86_64.whl",
        sha256: "bb94b2348e4861d5e8aa00b36c3d12d9bdf9c6369b82cbb723de0b582280a21c",
    },
    Wheel {
        package: "nvidia-nvjitlink-cu12",
        version: "12.9.86",
        megabytes: 40,
        file: "nvidia_nvjitlink_cu12-12.9.86-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl",
        sha256: "e3f1171dbdc83c5932a45f0f4c99180a70de9bd2718c1ab77d14104f6d7147f9",
    },
];
