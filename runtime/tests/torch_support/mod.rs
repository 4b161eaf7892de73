//! The reference data of PyTorch, and what is equal to it.
#![allow(dead_code)] // each test program uses its part
use serde_json::Value;
use std::collections::HashMap;
use xlazy::prelude::*;

pub fn json(name: &str) -> Value {
    let path = format!("{}/tests/torch/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub struct Data(pub HashMap<String, Tensor>);

impl Data {
    pub fn open(name: &str) -> Data {
        crate::support::in_float32();
        let path = format!("{}/tests/torch/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
        Data(nn::load(path).unwrap().into_iter().collect())
    }

    /// What stands under a name, sorted: `CASE/grad/`.
    pub fn under(&self, prefix: &str) -> Vec<(String, Tensor)> {
        let mut found: Vec<(String, Tensor)> =
            self.0.iter().filter_map(|(n, t)| Some((n.strip_prefix(prefix)?.to_owned(), t.clone()))).collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }

    /// The largest difference is within what float32 leaves of numbers of this size.
    pub fn check(&self, name: &str, got: &Tensor) -> Result<(), String> {
        let want = self.0.get(name).ok_or_else(|| format!("{name} is not in the reference"))?;
        if got.shape() != want.shape() {
            return Err(format!("{name}: shape {}, torch's is {}", got.shape(), want.shape()));
        }
        near(name, &values(got), &values(want), 1e-6, 1e-5)
    }
}

pub fn values(t: &Tensor) -> Vec<f64> {
    match t.dtype() {
        I64 => t.to_vec::<i64>().into_iter().map(|v| v as f64).collect(),
        F64 => t.to_vec::<f64>(),
        _ => t.to_vec::<f32>().into_iter().map(f64::from).collect(),
    }
}

pub fn near(name: &str, got: &[f64], want: &[f64], absolute: f64, relative: f64) -> Result<(), String> {
    let size = want.iter().filter(|w| w.is_finite()).fold(0.0, |m: f64, w| m.max(w.abs()));
    let apart = |(g, w): (&f64, &f64)| {
        if g == w || g.is_nan() && w.is_nan() {
            0.0
        } else if (g - w).is_nan() {
            f64::INFINITY
        } else {
            (g - w).abs()
        }
    };
    let apart = got.iter().zip(want).map(apart).fold(0.0, f64::max);
    let allowed = absolute + relative * size;
    match apart <= allowed && got.len() == want.len() {
        true => Ok(()),
        false => Err(format!("{name}: {apart:e} apart, allowed {allowed:e}: {got:?} against {want:?}")),
    }
}
