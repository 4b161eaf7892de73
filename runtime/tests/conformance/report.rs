//! What became of each case: totals by dtype for the reader, and a line of JSON a case for programs.
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

/// A call in torch's words: `add(float32[5, 1], float32[5], alpha=2)`.
pub fn text(case: &Json) -> String {
    let given = [&case["input"]].into_iter().chain(case["args"].as_array().into_iter().flatten()).map(value);
    let named = case["kwargs"].as_object().into_iter().flatten().map(|(k, v)| format!("{k}={}", value(v)));
    format!("{}({})", case["op"].as_str().unwrap_or("?"), given.chain(named).collect::<Vec<_>>().join(", "))
}

fn value(v: &Json) -> String {
    let all = |items: &Vec<Json>| items.iter().map(value).collect::<Vec<_>>().join(", ");
    match v {
        Json::Null => "None".into(),
        Json::Array(items) => format!("[{}]", all(items)),
        Json::Object(o) => match (o.get("tensor"), o.get("tuple"), o.values().next()) {
            (Some(_), ..) => format!("{}{}", o["dtype"].as_str().unwrap_or("?"), o.get("shape").unwrap_or(&Json::Null)),
            (_, Some(Json::Array(items)), _) => format!("({})", all(items)),
            (.., Some(x)) => x.to_string().trim_matches('"').to_owned(),
            _ => "{}".into(),
        },
        v => v.to_string(),
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum State {
    Passed,
    Failed,
    /// No method has it, or the case cannot be read.
    Unsupported,
    /// Says nothing about xlazy: random, or counting in a storage that the case does not hold.
    Skipped,
}

/// Counts the cases of one shard.
#[derive(Default)]
pub struct Report {
    /// For each dtype, and for each op with its largest error: passed, failed, unsupported, skipped.
    by_dtype: BTreeMap<String, [usize; 4]>,
    by_op: BTreeMap<String, ([usize; 4], f64)>,
    pub failures: Vec<String>,
    pub passed: usize,
    /// The largest error of what passed, in parts of what is tolerated, and where.
    worst: (f64, String),
    /// The id of the last case.
    last: String,
}

/// Cells longer than this go to a folder or nowhere.
const LONGEST: usize = 4000;

/// Whether cells of what passes are wanted, too.
pub fn all_cells() -> bool {
    std::env::var_os("XLAZY_CONFORMANCE_CELLS").is_some()
}

impl Report {
    pub fn add(&mut self, case: &Json, state: State, worst: f64, why: &str) {
        let id = case["id"].as_str().unwrap_or("?");
        self.last = id.to_owned();
        let dtype = case["dtype"].as_str().unwrap_or("?");
        self.by_dtype.entry(dtype.to_owned()).or_default()[state as usize] += 1;
        let op = self.by_op.entry(crate::case::name(case)).or_default();
        op.0[state as usize] += 1;
        op.1 = op.1.max(worst);
        match state {
            State::Passed => self.passed += 1,
            State::Failed => self.failures.push(format!("{id}: {why}\n    {}", text(case))),
            _ => {}
        }
        if state == State::Passed && worst > self.worst.0 {
            self.worst = (worst, id.to_owned());
        }
        // one write a line, which other shards' lines do not come between
        if let Some(path) = std::env::var_os("XLAZY_CONFORMANCE_JSON").map(PathBuf::from) {
            let word = ["passed", "failed", "unsupported", "skipped"][state as usize];
            let line = json!({"id": id, "op": case["op"], "variant": case["variant"], "dtype": dtype, "state": word,
                "worst": worst, "why": why, "call": text(case)});
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            file.and_then(|mut f| f.write_all(format!("{line}\n").as_bytes())).expect("the report can be written");
        }
    }

    /// The last case as a cell: into the folder that `XLAZY_CONFORMANCE_CELLS` names, or behind the failure.
    pub fn cell(&mut self, text: &str) {
        match std::env::var_os("XLAZY_CONFORMANCE_CELLS").map(PathBuf::from) {
            Some(folder) => {
                let file = folder.join(format!("{}.rs", self.last.replace(['/', ':'], "_")));
                std::fs::write(file, text).expect("the folder of cells is there");
            }
            None => {
                if let Some(failure) = self.failures.last_mut().filter(|_| text.len() < LONGEST) {
                    *failure += &format!("\n{}", text.lines().map(|l| format!("    | {l}\n")).collect::<String>());
                }
            }
        }
    }

    pub fn print(&self, shard: usize) {
        let all = std::env::var_os("XLAZY_CONFORMANCE_OPS").is_some();
        for (op, ([passed, failed, unsupported, skipped], worst)) in &self.by_op {
            if all || failed + unsupported > 0 {
                println!(
                    "{op}, shard {shard}: {passed} passed, {failed} failed, {unsupported} unsupported, {skipped} skipped, worst {worst:.2}"
                );
            }
        }
        for (dtype, [passed, failed, unsupported, skipped]) in &self.by_dtype {
            println!(
                "{dtype}, shard {shard}: {passed} passed, {failed} failed, {unsupported} unsupported, {skipped} skipped"
            );
        }
        println!("worst of shard {shard}: {:.2} of what is tolerated, {}", self.worst.0, self.worst.1);
    }
}
