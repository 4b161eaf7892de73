//! Cells with crates that the runtime is made of, too: in the very version that it has, and in others. A crate may be linked
//! once in a graph of dylibs, so theirs must be none of its.
mod eval_support;

use eval_support::{engine, plain, run};
use std::path::Path;
use xlazy_kernel::engine::Reply;

/// The version of a crate in this workspace's lock.
fn ours(name: &str) -> String {
    let lock = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock")).expect("the lock");
    let (_, found) = lock.split_once(&format!("name = \"{name}\"\nversion = \"")).expect("a package");
    found.split('"').next().expect("a version").to_owned()
}

/// Cells in which a notebook's own JSON and safetensors meet tensors, types of its own and files of the runtime.
#[track_caller]
fn cells_go(serde_json: &str, safetensors: &str) {
    let engine = engine();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shared-{safetensors}.safetensors"));
    let cells = [
        (
            format!(
                ":dep serde_json = \"={serde_json}\"\n:dep safetensors = \"={safetensors}\"\n:dep html-escape = \"0.2\""
            ),
            None,
        ),
        ("let v = serde_json::json!({\"a\": [1.5, null]}); let t = Tensor::ones([2]) * 3.0;".into(), Some("")),
        ("v[\"a\"][0].as_f64().unwrap() + f64::from(t.to_vec::<f32>()[1])".into(), Some("=> 4.5\n")),
        (
            "struct Own(serde_json::Value); impl Own { fn first(&self) -> &serde_json::Value { &self.0[\"a\"][0] } }"
                .into(),
            Some(""),
        ),
        ("let own = Own(v.clone());".into(), Some("")),
        (
            "(own.first().to_string(), html_escape::encode_text(\"<\").into_owned())".into(),
            Some("=> (\"1.5\", \"&lt;\")\n"),
        ),
        (
            format!(
                "nn::save({file:?}, &[(\"w\".to_owned(), t.clone())])?; let bytes = std::fs::read({file:?})?;\n\
                 {{ let read = safetensors::SafeTensors::deserialize(&bytes).unwrap();\n\
                 let w = read.tensor(\"w\").unwrap(); format!(\"{{:?}} {{:?}} {{:?}}\", w.dtype(), w.shape(), w.data()) }}"
            ),
            Some("=> \"F32 [2] [0, 0, 64, 64, 0, 0, 64, 64]\"\n"),
        ),
    ];
    for (n, (code, shown)) in cells.iter().enumerate() {
        let (out, reply) = run(&engine, n as u64 + 1, code);
        if let Reply::Error(failure) = reply {
            panic!("{code}\n{}", plain(&failure));
        }
        assert!(shown.is_none_or(|shown| out == shown), "{code}\n{out}");
    }
}

#[test]
fn cells_use_crates_in_the_version_that_the_runtime_has() {
    cells_go(&ours("serde_json"), &ours("safetensors"));
}

#[test]
fn cells_use_crates_in_another_version_than_the_runtime_has() {
    let (serde_json, safetensors) = ("1.0.128", "0.4.5");
    assert!(ours("serde_json") != serde_json && ours("safetensors") != safetensors);
    cells_go(serde_json, safetensors);
}
