//! Torch's Fourier transforms and complex numbers → calls through xlazy's public API.
use crate::case::Case;
use crate::options::NAMED;
use xlazy::prelude::*;
use xlazy::{FftNorm, StftOptions};

fn norm(c: &Case, i: usize) -> FftNorm {
    match c.str(i, "norm", "backward").as_str() {
        "ortho" => FftNorm::Ortho,
        "forward" => FftNorm::Forward,
        _ => FftNorm::Backward,
    }
}

fn stft(c: &Case) -> Tensor {
    let size = |i: usize, name: &str| c.get(i, name).map(|_| c.count(i, name, 0));
    let pad_mode = match c.str(NAMED, "pad_mode", "reflect").as_str() {
        "replicate" => PadMode::Replicate,
        "circular" => PadMode::Circular,
        _ => PadMode::Reflect,
    };
    let options = StftOptions {
        hop_length: size(2, "hop_length"),
        win_length: size(3, "win_length"),
        window: c.tensor(4, "window").cloned(),
        center: c.flag(NAMED, "center", true),
        pad_mode,
        normalized: c.flag(NAMED, "normalized", false),
        onesided: c.get(NAMED, "onesided").map(|_| c.flag(NAMED, "onesided", true)),
    };
    c.t(0).stft(c.count(1, "n_fft", 0), options)
}

pub fn call(c: &Case) -> Option<Vec<Tensor>> {
    let x = || c.t(0);
    let one = || (c.get(1, "n").map(|_| c.count(1, "n", 0)), c.int(2, "dim", -1), norm(c, 3));
    let two = || (c.dims(1, "s"), c.dims(2, "dim"), norm(c, 3));
    // the last two dimensions where none are named
    let image = || {
        let (s, dim, norm) = two();
        (s, if dim.is_empty() { vec![-2, -1] } else { dim }, norm)
    };
    macro_rules! along {
        ($method:ident) => {{
            let (n, dim, norm) = one();
            x().$method(n, dim, norm)
        }};
    }
    macro_rules! over {
        ($method:ident, $which:ident) => {{
            let (s, dim, norm) = $which();
            x().$method(s, dim, norm)
        }};
    }
    let y = match c.name.as_str() {
        "fft.fft" => along!(fft),
        "fft.ifft" => along!(ifft),
        "fft.rfft" => along!(rfft),
        "fft.irfft" => along!(irfft),
        "fft.hfft" => along!(hfft),
        "fft.ihfft" => along!(ihfft),
        "fft.fftn" => over!(fftn, two),
        "fft.ifftn" => over!(ifftn, two),
        "fft.rfftn" => over!(rfftn, two),
        "fft.irfftn" => over!(irfftn, two),
        "fft.fft2" => over!(fft2, image),
        "fft.ifft2" => over!(ifft2, image),
        "fft.rfft2" => over!(rfft2, image),
        "fft.irfft2" => over!(irfft2, image),
        "stft" => stft(c),
        "complex" => x().complex(c.t(1)),
        "polar" => x().polar(c.t(1)),
        "view_as_complex" => x().view_as_complex(),
        "view_as_real" => x().view_as_real(),
        "imag" => x().imag(),
        _ => return None,
    };
    Some(vec![y])
}
