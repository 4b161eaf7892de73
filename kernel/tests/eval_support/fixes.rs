//! Fixes that are told in code, made as they are told: the cell with the fix compiles nothing more.
use super::{engine, run_watched};
use serde_json::Value;
use xlazy_kernel::engine::Reply;

/// The changes of a program's code that were told with its cells' compilations, in order. Of two in one place the later one
/// holds, which knows more.
fn told(compiled: &[Vec<Value>]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for why in compiled.iter().flat_map(|c| explanations(c)) {
        let edits = why["edits"].as_array().expect("a list");
        let place = |e: &Value| ["cell", "line", "column"].map(|key| e[key].as_u64());
        all.retain(|e| !edits.iter().any(|new| place(e) == place(new)));
        all.extend(edits.iter().cloned());
    }
    all
}

/// What is said of recompilations, with what is said besides.
fn explanations(compiled: &[Value]) -> impl Iterator<Item = &Value> {
    let whys = compiled.iter().map(|c| &c["why"]).filter(|why| why.is_object());
    whys.flat_map(|why| std::iter::once(why).chain(why["also"].as_array().into_iter().flatten()))
}

/// Makes the changes in the cells, by number from 1.
fn made(cells: &[String], edits: &[Value]) -> Vec<String> {
    let number = |e: &Value, key: &str| e[key].as_u64().unwrap_or_else(|| panic!("{key} of {e}")) as usize;
    let mut edits: Vec<&Value> = edits.iter().collect();
    edits.sort_by_key(|e| std::cmp::Reverse((number(e, "line"), number(e, "column"))));
    let mut cells = cells.to_vec();
    for e in edits {
        let text = &mut cells[number(e, "cell") - 1];
        let byte = |line: &str, column: &str| {
            let start: usize = text.split_inclusive('\n').take(number(e, line) - 1).map(str::len).sum();
            let rest = &text[start..];
            start + rest.char_indices().nth(number(e, column) - 1).map_or(rest.len(), |(i, _)| i)
        };
        let range = byte("line", "column")..byte("end_line", "end_column");
        text.replace_range(range, e["text"].as_str().expect("a text"));
    }
    cells
}

/// What is explained with a fix in code.
fn fixable(compiled: &[Value]) -> Vec<&Value> {
    explanations(compiled).filter(|why| why["edits"] != Value::Array(vec![])).collect()
}

/// Runs the program with all fixes made that were told in code, `compiled` being what each cell compiled without them. A cell
/// that was explained so is not explained so any more, but for what is expected once, and run twice more it compiles nothing.
/// What is wrong is the answer.
pub fn check(cells: &[String], compiled: &[Vec<Value>]) -> String {
    let edits = told(compiled);
    let mut wrong = String::new();
    let Some(last) = compiled.iter().rposition(|c| !fixable(c).is_empty()) else { return wrong };
    let classes: Vec<&str> = compiled.iter().flat_map(|c| fixable(c)).filter_map(|why| why["class"].as_str()).collect();
    println!("{} changes of the code are made, told for {}", edits.len(), classes.join(", "));
    let session = engine();
    let mut number = 0;
    let mut run = |code: &str| {
        number += 1;
        run_watched(&session, number, code)
    };
    for (code, before) in made(cells, &edits).iter().zip(compiled).take(last + 1) {
        let mended = fixable(before);
        let rounds = if mended.is_empty() { 1 } else { 3 };
        for round in 0..rounds {
            let (text, reply, after) = run(code);
            if reply != Reply::Ok && round > 0 {
                // It moves what it takes away.
                break;
            }
            if reply != Reply::Ok && !mended.is_empty() {
                wrong += &format!("with the fix, this fails:\n{code}{text}\n{reply:?}\n");
                break;
            }
            let same = |a: &Value, b: &Value| a["class"] == b["class"] && a["at"]["cell"] == b["at"]["cell"];
            let once = |why: &Value| why["fix"].as_str().is_some_and(|fix| fix.contains("expected once"));
            let news = |why: &&Value| why["warm_up"] == Value::Bool(false) && !once(why);
            let again = explanations(&after).filter(news).any(|why| mended.iter().any(|m| same(m, why)));
            if !mended.is_empty() && (round == 0 && again || round == 2 && !after.is_empty()) {
                let said: Vec<&str> = after.iter().filter_map(|c| c["sentence"].as_str()).collect();
                wrong += &format!("with the fix, this compiles in run {}:\n{code}{}\n", round + 1, said.join("\n"));
            }
        }
    }
    wrong
}
