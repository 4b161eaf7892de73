//! Programs compiled for TPUs that are not there. Without libtpu the tests that need it say that they were skipped.
mod aot_programs;
mod aot_support;

use aot_programs::{Expect, PROGRAMS};
use aot_support::{fresh_cache, libtpu};
use std::time::{Duration, Instant};
use xlazy::aot::{self, Options, Report};
use xlazy::prelude::*;

/// Every program on one chip: what compiles must fit and have an estimate, what must not compile says why.
fn all_programs_on(one: &str, four: &str) {
    if libtpu().is_none() {
        return;
    }
    fresh_cache();
    for program in PROGRAMS {
        let (topology, partitions) = if program.partitions == 4 { (four, 4) } else { (one, 1) };
        let options = Options { partitions, level: 1, ..Options::default() };
        let answer = aot::compile_program(program.text().as_bytes(), topology, &options);
        let name = program.name;
        match (&program.expect, answer) {
            (Expect::Fits, Ok(report)) => {
                assert!(report.fits(), "{name}: {report}");
                assert!(report.fit.peak > 0 && report.fit.peak <= report.fit.limit, "{name}: {report}");
                assert!(report.fit.arguments > 0 && report.fit.outputs > 0 && report.fit.code > 0, "{name}: {report}");
                assert!(!report.fit.largest.is_empty(), "{name}: {report}");
                assert!(report.time.rows.len() + report.time.without.len() > 0, "{name}: {report}");
                let sum: u64 = report.time.rows.iter().map(|r| r.total()).sum();
                assert_eq!(report.cycles(), sum, "{name}");
                assert!(report.cycles() > 0 || !report.time.without.is_empty(), "{name}: {report}");
                assert!(report.seconds() > 0.0 || report.cycles() == 0, "{name}");
                assert_eq!((report.partitions, report.topology.as_str()), (partitions, topology));
                println!("{topology} {name}: {} cycles, peak {}", report.cycles(), report.fit.peak);
            }
            (Expect::TooLarge, Ok(report)) => {
                assert!(!report.fits(), "{name}: {report}");
                assert!(report.fit.words.contains("E1000"), "{name}: {report}");
                assert!(report.fit.peak > report.fit.limit, "{name}: {report}");
                let text = report.to_string();
                assert!(text.contains("matmul (big.py:3)") && text.contains("does not fit"), "{text}");
            }
            (Expect::Refused(words), Err(e)) => assert!(e.to_string().contains(words), "{name}: {e}"),
            (_, Ok(report)) => panic!("{name} on {topology}: {report}"),
            (_, Err(e)) => panic!("{name} on {topology}: {e}"),
        }
    }
}

#[test]
fn programs_on_v5e() {
    all_programs_on("v5e:1x1", "v5e:2x2");
}

#[test]
fn programs_on_v5p() {
    all_programs_on("v5p:1x1", "v5p:2x2x1");
}

#[test]
fn programs_on_v6e() {
    all_programs_on("v6e:1x1", "v6e:2x2");
}

fn of(name: &str, topology: &str) -> Report {
    let program = PROGRAMS.iter().find(|p| p.name == name).unwrap();
    let options = Options { partitions: program.partitions, ..Options::default() };
    aot::compile_program(program.text().as_bytes(), topology, &options).unwrap()
}

#[test]
fn loops_are_multiplied_out() {
    if libtpu().is_none() {
        return;
    }
    fresh_cache();
    let report = of("while", "v5e");
    let dearest = &report.time.rows[0];
    assert_eq!(dearest.times, Some(10), "{report}");
    assert_eq!(dearest.total(), 10 * dearest.cycles.unwrap());
    assert!(report.to_string().contains("×10"));
}

#[test]
fn narrow_types_take_less_than_wide_ones() {
    if libtpu().is_none() {
        return;
    }
    fresh_cache();
    let [wide, half] = ["matmul f32", "matmul bf16"].map(|name| of(name, "v5e"));
    assert!(half.cycles() < wide.cycles(), "{} and {}", half.cycles(), wide.cycles());
    assert!(half.fit.peak < wide.fit.peak);
}

#[test]
fn four_partitions_share_the_memory() {
    if libtpu().is_none() {
        return;
    }
    fresh_cache();
    let whole = of("matmul f32", "v5e:2x2");
    let split = of("four partitions", "v5e:2x2");
    assert!(split.fit.arguments < whole.fit.arguments, "{split}");
    assert!(split.time.without.iter().chain(&split.time.rows).any(|r| r.opcode.contains("all-")), "{split}");
    let options = Options { partitions: 8, ..Options::default() };
    let e = aot::compile_program(PROGRAMS[0].text().as_bytes(), "v5e:2x2", &options).unwrap_err();
    assert!(e.to_string().contains("v5e:2x2 has 4"), "{e}");
}

#[test]
fn a_program_of_tensors_tells_the_users_lines() {
    if libtpu().is_none() {
        return;
    }
    fresh_cache();
    let x = Tensor::randn([256, 512]);
    let w = Tensor::randn([512, 128]);
    sync();
    let line = line!() + 1;
    let y = x.to(BF16).matmul(&w.to(BF16)).relu();
    let report = aot::compile(&y, "v5e:1x1");
    let source = report.time.rows.iter().flat_map(|r| &r.sources).find(|s| s.op == "matmul").expect("a matmul");
    assert_eq!(source.at, format!("aot.rs:{line}"), "{report}");
    assert!(!report.cached);

    // The same again, and the same program written on other lines.
    let again = aot::compile(&y, "v5e:1x1");
    assert!(again.cached);
    assert_eq!((again.cycles(), &again.time.rows[0].sources), (report.cycles(), &report.time.rows[0].sources));
    let moved = x.to(BF16).matmul(&w.to(BF16)).relu();
    let moved = aot::compile(&moved, "v5e:1x1");
    assert!(moved.cached);
    assert!(moved.time.rows.iter().flat_map(|r| &r.sources).all(|s| s.at != format!("aot.rs:{line}")), "{moved}");

    // Options and topology are part of what is asked.
    assert_eq!(report.level, 2);
    let level = aot::compile_with(&y, "v5e:1x1", &Options { level: 1, ..Options::default() }).unwrap();
    assert!(!level.cached && level.level == 1);
    assert!(!aot::compile(&y, "v6e:1x1").cached);
}

/// A step of a two-layer network: forward, backward, an update of every parameter.
fn training_step(batch: usize) -> Vec<Tensor> {
    let parameters: Vec<Tensor> = [[784, 512], [512, 256]].map(|s| Tensor::zeros(s).requires_grad_(true)).to_vec();
    // Parameters on the device are arguments of the program; random numbers in it would be most of what is compiled.
    sync();
    let x = Tensor::arange(0.0, (batch * 784) as f64, 1.0).reshape([batch as i64, 784]).sin();
    let y = x.matmul(&parameters[0]).relu().matmul(&parameters[1]);
    let loss = (&y * &y).mean();
    loss.backward();
    let mut outputs: Vec<Tensor> = no_grad(|| parameters.iter().map(|p| p - p.grad().unwrap() * 0.01).collect());
    outputs.push(loss);
    outputs
}

/// At the level that takes a tenth of the time.
fn quick(outputs: &[Tensor], topology: &str) -> Report {
    aot::compile_with(outputs, topology, &Options { level: 1, ..Options::default() }).unwrap()
}

#[test]
fn a_training_step_compiles_whole() {
    if libtpu().is_none() {
        return;
    }
    fresh_cache();
    for topology in ["v5e", "v5p", "v6e"] {
        let report = quick(&training_step(64), topology);
        assert!(report.fits() && report.cycles() > 0, "{report}");
    }
    let (small, large) = (quick(&training_step(64), "v5e"), quick(&training_step(4096), "v5e"));
    assert!(small.cached);
    assert!(small.cycles() < large.cycles() && small.fit.peak < large.fit.peak);
    // 52 GB of activations.
    let huge = quick(&training_step(1 << 24), "v5e");
    assert!(!huge.fits() && huge.fit.words.contains("E1000"), "{huge}");
    assert!(huge.fit.largest[0].sources[0].at.starts_with("aot.rs:"), "{huge}");
}

#[test]
fn chips_stand_side_by_side() {
    if libtpu().is_none() {
        return;
    }
    fresh_cache();
    let w = Tensor::randn([1024, 1024]);
    sync();
    let chips = ["v4", "v5e", "v5p", "v6e", "tpu7x"];
    let table = aot::compare(&w.matmul(&w), &chips);
    for chip in chips {
        let report = table.of(chip).unwrap_or_else(|| panic!("{table}"));
        assert!(report.fits() && report.seconds() > 0.0, "{table}");
    }
    assert!(table.of("v6e").unwrap().cycles() < table.of("v5e").unwrap().cycles());
    let text = table.to_string();
    assert!(text.contains("not measurements") && text.lines().count() == 7, "{text}");
    assert!(table.rich().get("text/html").unwrap().contains("<table"));
    assert!(table.json().starts_with('['));
    println!("{text}");
}

/// A recorded program takes another batch, which the compiler is asked about; and a picture of what it makes of the chip.
#[test]
fn a_recorded_program_takes_another_batch() {
    if libtpu().is_none() {
        return;
    }
    fresh_cache();
    let (x, scale) = (Tensor::ones([48, 1 << 20]), Tensor::ones([48]));
    sync();
    let step = (x.tanh() * scale.unsqueeze(1)).reshape([48 * 1024, 1024]);
    let shown = aot::magic("v5e --quick --largest-batch --json", &step);
    let json: serde_json::Value = serde_json::from_str(shown.plain()).expect("JSON");
    let inputs = json["inputs"].as_array().expect("a list");
    assert_eq!(inputs.len(), 2, "{json}");
    assert!(json["largest_batch"].as_u64() > Some(1_000), "{json}");
    assert!(json["beyond"]["why"].as_str().is_some_and(|why| why.starts_with("needs")), "{json}");
    let drawn = aot::magic("v5e --quick --roofline", &step);
    assert!(drawn.plain().contains("the whole program"), "{}", drawn.plain());
    assert!(drawn.get("image/svg+xml").is_some_and(|svg| svg.contains("<circle")));
}

#[test]
fn small_programs_answer_soon() {
    if libtpu().is_none() {
        return;
    }
    fresh_cache();
    let start = Instant::now();
    let first = of("matmul f32", "v5e");
    let took = start.elapsed();
    println!("first {took:?}, of which the compiler {:.2} s", first.compile_seconds);
    // Far beyond what it takes (0.3 s), so that a busy machine passes.
    assert!(took < Duration::from_secs(10), "{took:?}");
    let start = Instant::now();
    assert!(of("matmul f32", "v5e").cached);
    println!("again {:?}", start.elapsed());
}

#[test]
fn what_has_its_value_is_no_program() {
    if libtpu().is_none() {
        return;
    }
    fresh_cache();
    let x = tensor([1.0, 2.0]);
    let e = aot::compile_with(&x, "v5e", &Options::default()).unwrap_err();
    assert!(e.to_string().contains("have their values already"), "{e}");
    // A value that a read has cached does not cut the program short.
    let y = &x * 2.0;
    assert_eq!(y.sum().item(), 6.0);
    let z = y.exp();
    let _: Vec<f32> = z.to_vec();
    let report = aot::compile(&z, "v5e");
    let ops: Vec<&str> =
        report.time.rows.iter().chain(&report.time.without).flat_map(|r| &r.sources).map(|s| s.op.as_str()).collect();
    assert!(ops.contains(&"mul") && ops.contains(&"exp"), "{report}");
}

#[test]
fn nothing_reaches_the_compiler_that_must_not() {
    // None of these needs libtpu.
    let refused = |program: &str, topology: &str| {
        aot::compile_program(program.as_bytes(), topology, &Options::default()).unwrap_err().to_string()
    };
    assert!(refused("%1 = f() : tensor<?x2xf32>", "v5e").contains("tensor<?x2xf32>"));
    assert!(refused("module {}", "v5x").contains("v5e:2x2"));
    assert!(refused("module {}", "v5e:3by3").contains("v5e:2x2"));
    let options = Options { level: 7, ..Options::default() };
    assert!(aot::compile_program(b"module {}", "v5e", &options).is_err());
}
