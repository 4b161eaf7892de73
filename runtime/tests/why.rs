//! Why the programs of whole runs were compiled again. In `dumps/runs` is what JAX made of `jax/train.py` (JAX_DUMP_IR_TO) and what
//! torch_xla 2.9 made of scenarios (XLA_SAVE_TENSORS_FILE, as its own text and as HLO).
#[path = "../../tests/support/schema.rs"]
mod schema;
mod support;

use expect_test::{Expect, expect};
use serde_json::Value;
use std::path::Path;

/// A line for each program: its kind, and why it was compiled again.
fn check(run: &str, expected: Expect) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dumps/runs").join(run);
    let told = xlazy::insight::why_json(&[path.to_str().unwrap()]).unwrap_or_else(|e| panic!("{run}: {e}"));
    let told = schema::Schema::read(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()).check("dumps", &told);
    let one = |p: &Value| {
        let at = |at: &Value| format!("{}:{}", at["file"].as_str().unwrap().rsplit('/').next().unwrap(), at["line"]);
        let kind = format!("#{} of kind {}", p["number"], p["kind"]);
        let why = &p["why"];
        if why.is_null() {
            return format!("{kind}, the first\n");
        }
        let d = &why["differences"][0];
        for word in support::OURS {
            assert!(!why["fix"].as_str().unwrap().contains(word), "{why}");
        }
        let side = |name: &str| d[name].as_str().unwrap();
        format!(
            "{kind}: {} at {}: {} was {}, is {}\n",
            why["class"].as_str().unwrap(),
            at(&why["at"]),
            side("what"),
            side("was"),
            side("now")
        )
    };
    expected.assert_eq(&told["programs"].as_array().unwrap().iter().map(one).collect::<String>());
}

#[test]
fn jax() {
    check(
        "jax",
        expect![[r#"
        #1 of kind 0, the first
        #2 of kind 0: shape at train.py:29: `x` was f32[4,8], is f32[2,8]
        #3 of kind 0: dtype at train.py:30: `x` was f32[4,8], is f16[4,8]
        #4 of kind 1, the first
        #5 of kind 1: constant at train.py:23: what `integer_pow` is made of was 1 op, is 2 ops
        #6 of kind 1: constant at train.py:23: what `integer_pow` is made of was 2 ops, is 2 ops, other ones
        #7 of kind 2, the first
        #8 of kind 2: eviction at train.py:35: cached program was (#7, the very same), is none
        #9 of kind 2: eviction at train.py:35: cached program was (#7, the very same), is none
        #10 of kind 0: dtype at train.py:36: `lr` was f32[], a number of the language (weakly typed), is f32[], an array
    "#]],
    );
}

#[test]
fn a_short_batch() {
    check(
        "torch_xla/s01.text",
        expect![[r#"
        #1 of kind 0, the first
        #2 of kind 0: shape at s01_last_short_batch.py:23: input was f32[4,8], is f32[2,8]
    "#]],
    );
}

#[test]
fn another_dtype() {
    check(
        "torch_xla/s03.text",
        expect![[r#"
        #1 of kind 0, the first
        #2 of kind 0: dtype at s03_dtype_change.py:20: input was f32[4,8], is f64[4,8]
    "#]],
    );
}

#[test]
fn numbers_in_the_program() {
    check(
        "torch_xla/s04.hlo",
        expect![[r#"
        #1 of kind 0, the first
        #2 of kind 0: constant at _tensor.py:45: attribute `value` of constant was 2, is 3
        #3 of kind 0: constant at _tensor.py:45: attribute `value` of constant was 3, is 4
    "#]],
    );
    check(
        "torch_xla/s05.hlo",
        expect![[r#"
        #1 of kind 0, the first
        #2 of kind 0: constant at s05_special_scalars_0_1.py:8: a number was part of the program, is an input
        #3 of kind 0: constant at s05_special_scalars_0_1.py:8: attribute `value` of constant was 0, is 1
    "#]],
    );
}

#[test]
fn momentum_in_the_second_step() {
    check(
        "torch_xla/s07.text",
        expect![[r#"
        #1 of kind 0, the first
        #2 of kind 0: structure at sgd.py:361: op was none, is mse_loss_backward → f32[4,1]
    "#]],
    );
}

#[test]
fn values_that_are_read() {
    check(
        "torch_xla/s08.text",
        expect![[r#"
        #1 of kind 0, the first
        #2 of kind 0: early-read at s08_print_loss_in_step.py:11: program was 31 ops and 13 results at the sync, is 6 ops for the one value read
        #3 of kind 0: early-read at s08_print_loss_in_step.py:11: the step was 31 ops in one program, is 31 ops behind a value that was read
    "#]],
    );
    check(
        "torch_xla/s09.text",
        expect![[r#"
        #1 of kind 0, the first
        #2 of kind 1, the first
        #3 of kind 1: control-flow at s09_item_in_condition.py:7: input was none, is f32[]
    "#]],
    );
    check(
        "torch_xla/s15.text",
        expect![[r#"
        #1 of kind 0, the first
        #2 of kind 0: structure at functional.py:1418: op was none, is constant → i64[]
        #3 of kind 0: structure at functional.py:1418: op was none, is constant → i64[]
    "#]],
    );
    check(
        "torch_xla/s22.text",
        expect![[r#"
        #1 of kind 0, the first
        #2 of kind 0: early-read at s22_read_one_of_several.py:14: program was 5 ops and 2 results at the sync, is 3 ops for the one value read
        #3 of kind 0: aliasing at s22_read_one_of_several.py:23: the same graph was run by a read, is run by a sync
    "#]],
    );
}

#[test]
fn sizes_that_depend_on_data() {
    check(
        "torch_xla/s13.hlo",
        expect![[r#"
        #1 of kind 0, the first
        #2 of kind 1, the first
        #3 of kind 2, the first
        #4 of kind 2: shape at s13_masked_select_nonzero.py:5: input was i64[3,1], is i64[2,1]
        #5 of kind 2: shape at s13_masked_select_nonzero.py:6: input was f32[2], is f32[1]
    "#]],
    );
}

#[test]
fn equal_numbers_are_one_parameter() {
    check(
        "torch_xla/s20.hlo",
        expect![[r#"
        #1 of kind 0, the first
        #2 of kind 0: aliasing at s20_equal_scalars_dedup.py:6: operand 1 of multiply was input 2 (f32[8]), is input 3 (f32[8])
    "#]],
    );
}

#[test]
fn a_layer_more() {
    check(
        "torch_xla/s28.text",
        expect![[r#"
        #1 of kind 0, the first
        #2 of kind 0: structure at linear.py:134: op was none, is permute → f32[8,8]
    "#]],
    );
}

#[test]
fn what_compiles_nothing_more() {
    check(
        "torch_xla/s30.text",
        expect![[r#"
        #1 of kind 0, the first
    "#]],
    );
}

/// What TorchTPU writes, as PyTorch documents structured traces: hand-made of what JAX compiled.
#[test]
fn a_trace_of_pytorchs() {
    let dumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dumps");
    let mut trace =
        String::from("V1122 10:00:00.000000 7 torch/_logging/structured.py:19] {\"str\": [\"train.py\", 0]}\n");
    for (n, name) in ["step", "batch"].into_iter().enumerate() {
        let of = format!("\"frame_id\": 0, \"frame_compile_id\": {n}, \"attempt\": 0");
        let start = format!(
            "{{\"dynamo_start\": {{\"stack\": [{{\"line\": 40, \"name\": \"main\", \"filename\": 0}}]}}, {of}}}"
        );
        let artifact = format!(
            "{{\"artifact\": {{\"name\": \"stablehlo\", \"encoding\": \"string\"}}, {of}, \"has_payload\": \"0\"}}"
        );
        for (json, payload) in
            [(start, ""), (artifact, &*std::fs::read_to_string(dumps.join(name).with_extension("mlir")).unwrap())]
        {
            trace += &format!("V1122 10:00:0{n}.000000 7 torch/_logging/structured.py:28] {json}\n");
            trace.extend(payload.lines().map(|l| format!("\t{l}\n")));
        }
    }
    let path = std::env::temp_dir().join(format!("xlazy-trace-{}.log", std::process::id()));
    std::fs::write(&path, trace).unwrap();
    check(
        path.to_str().unwrap(),
        expect![[r#"
            #1 of kind 0, the first
            #2 of kind 0: shape at train.py:40: `x` was f32[4,8], is f32[6,8]
        "#]],
    );
    std::fs::remove_file(path).unwrap();
}
