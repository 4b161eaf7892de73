//! Programs over many chips that are not there: what XLA's TPU compiler has the devices tell one another, and for which line.
//! Without libtpu the tests say that they were skipped.
mod aot_support;
mod support;

use aot_support::{fresh_cache, libtpu};
use std::time::{Duration, Instant};
use support::alone_on;
use xlazy::aot::{self, Options, Report};
use xlazy::prelude::*;

/// What is compiled for a slice: the axes of the program's mesh with other sizes.
fn compiled(step: &Step, topology: &str, mesh: &[(&str, u64)], slices: u64) -> Report {
    let mesh = mesh.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
    let start = Instant::now();
    let report =
        aot::compile_with(&step.outputs[..], topology, &Options { mesh, slices, level: 1, ..Options::default() });
    let report = report.unwrap_or_else(|e| panic!("{topology}: {e}"));
    println!("{topology}, {slices} slices: {:?}", start.elapsed());
    report.collectives.iter().for_each(|c| println!("  {} {} {} {:?}", c.kind, c.shape, c.groups, c.sources));
    assert!(report.fits(), "{report}");
    report
}

/// Each collective: its kind, what it gives, and the line that it is for.
fn told(report: &Report) -> Vec<(&str, &str, &str)> {
    let all = report.collectives.iter();
    all.map(|c| (c.kind.as_str(), c.shape.as_str(), c.sources.first().map_or("", |s| s.at.as_str()))).collect()
}

fn data(shape: &[i64]) -> Tensor {
    let n: i64 = shape.iter().product();
    (Tensor::arange(0, n, 1) % 7).to(F32).reshape(shape)
}

/// A step of training, and the lines of its forward pass and its loss.
struct Step {
    outputs: Vec<Tensor>,
    forward: String,
    loss: String,
}

/// Two layers, of rows that are split.
fn step(mesh: &Mesh, weights: [&[Option<&str>]; 2]) -> Step {
    let (x, y) = (data(&[24576, 64]), data(&[24576, 16]));
    let ws = [data(&[64, 128]), data(&[128, 16])];
    sync();
    mark_sharding(&x, mesh, &[Some("data"), None]);
    mark_sharding(&y, mesh, &[Some("data"), None]);
    for (w, spec) in ws.iter().zip(weights) {
        mark_sharding(w, mesh, spec).requires_grad_(true);
    }
    let line = line!();
    let found = x.matmul(&ws[0]).relu().matmul(&ws[1]);
    let loss = (found - &y).square().mean();
    loss.backward();
    let mut outputs: Vec<Tensor> = no_grad(|| ws.iter().map(|w| w - w.grad().unwrap() * 0.01).collect());
    outputs.push(loss);
    let at = |line: u32| format!("aot_slices.rs:{line}");
    Step { outputs, forward: at(line + 1), loss: at(line + 2) }
}

const WHOLE: [&[Option<&str>]; 2] = [&[None, None]; 2];
/// The loss and both gradients, whole.
const ALL: &str = "(f32[], f32[64,128], f32[128,16])";

#[test]
fn data_parallel_is_one_all_reduce_on_thousands_of_cores() {
    if libtpu().is_none() {
        return;
    }
    let _alone = alone_on(8);
    fresh_cache();
    let step = step(&Mesh::new(&[("data", 8)]), WHOLE);
    for (topology, devices) in [("v3-2048", 2048), ("v4:4x4x4", 128), ("v5p:16x16x24", 6144)] {
        let report = compiled(&step, topology, &[("data", devices)], 1);
        assert_eq!((report.devices, report.partitions), (devices, devices));
        assert_eq!(told(&report), [("all-reduce", ALL, &*step.loss)], "{report}");
    }
}

#[test]
fn tensor_parallel_sums_activations_over_one_axis_and_gradients_over_the_other() {
    if libtpu().is_none() {
        return;
    }
    let _alone = alone_on(8);
    fresh_cache();
    let mesh = Mesh::new(&[("data", 4), ("model", 2)]);
    let step = step(&mesh, [&[None, Some("model")], &[Some("model"), None]]);
    let report = compiled(&step, "v5e-256", &[("data", 16), ("model", 16)], 1);
    let of_model = ("all-reduce", "f32[1536,16]", &*step.forward);
    assert_eq!(told(&report), [of_model, ("all-reduce", "(f32[], f32[64,8], f32[8,16])", &*step.loss)], "{report}");
}

#[test]
fn fsdp_brings_the_weights_together_and_adds_their_gradients_up() {
    if libtpu().is_none() {
        return;
    }
    let _alone = alone_on(8);
    fresh_cache();
    let step = step(&Mesh::new(&[("data", 8)]), [&[Some("data"), None], &[Some("data"), None]]);
    let report = compiled(&step, "v5e-64", &[("data", 64)], 1);
    // libtpu gathers what is small as a sum of parts and zeros, for the weights themselves.
    assert_eq!(
        told(&report),
        [("all-reduce", "(f32[64,128], f32[128,16])", ""), ("all-reduce", ALL, &*step.loss)],
        "{report}"
    );
}

#[test]
fn two_slices_add_up_over_the_network_of_the_data_centre() {
    if libtpu().is_none() {
        return;
    }
    let _alone = alone_on(8);
    fresh_cache();
    let step = step(&Mesh::new(&[("data", 8)]), WHOLE);
    let report = compiled(&step, "v5e-16", &[("data", 32)], 2);
    assert_eq!((report.slices, report.partitions), (2, 32));
    let between: Vec<&str> = report.collectives.iter().filter(|c| c.between_slices).map(|c| &*c.kind).collect();
    assert!(!between.is_empty() && between.iter().all(|kind| *kind == "all-reduce"), "{report}");
}

#[test]
fn the_largest_batch_of_a_mesh_is_found_in_seconds() {
    if libtpu().is_none() {
        return;
    }
    let _alone = alone_on(8);
    fresh_cache();
    let step = step(&Mesh::new(&[("data", 8)]), WHOLE);
    let start = Instant::now();
    let shown = aot::magic("v5e-16 --mesh data=16 --quick --largest-batch --json", &step.outputs[..]);
    let took = start.elapsed();
    let json: serde_json::Value = serde_json::from_str(shown.plain()).unwrap_or_else(|_| panic!("{}", shown.plain()));
    println!("{took:?} {} {} {}", json["largest_batch"], json["compilations"], json["beyond"]);
    let batch = json["largest_batch"].as_u64().unwrap();
    assert!(batch > 24576 && batch.is_multiple_of(16), "{json}");
    assert!(json["beyond"]["why"].as_str().is_some_and(|why| why.starts_with("needs")), "{json}");
    // Far beyond what it takes, so that a busy machine passes.
    assert!(took < Duration::from_secs(60), "{took:?}");
}
