//! The programs in PyTorch's structured trace (`TORCH_TRACE=DIR`), which TorchTPU writes its artifacts to: one line of JSON for each
//! event, behind a prefix of the log's, and below it the payload, each line of which begins with a tab. From its documentation;
//! untried with TorchTPU itself.
use super::module::Line;
use crate::json::Value;
use std::collections::HashMap;

/// A program of a trace.
pub(super) struct Traced {
    /// Which compilation it is of: frame, and which time that was compiled.
    pub id: String,
    pub text: String,
    /// Lines of the file before it.
    pub before: u32,
    /// The calls that led to it, from the innermost on.
    pub frames: Vec<Line>,
}

/// The programs of a trace, of each compilation the one that was written first; none where the text is no trace.
pub(super) fn programs(text: &str) -> Vec<Traced> {
    let mut names: HashMap<u64, String> = HashMap::new();
    let mut stacks: HashMap<String, Vec<Line>> = HashMap::new();
    let mut all: Vec<Traced> = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((n, line)) = lines.next() {
        let Some(event) = event(line) else { continue };
        let mut payload = String::new();
        while let Some((_, more)) = lines.next_if(|(_, l)| l.starts_with('\t')) {
            payload.push_str(&more[1..]);
            payload.push('\n');
        }
        // Names of files are told once, by number.
        if let Some([Value::String(name), number]) = event["str"].as_array().map(Vec::as_slice) {
            names.extend(number.as_u64().map(|number| (number, name.clone())));
            continue;
        }
        let id = compilation(&event);
        let stack = [&event["dynamo_start"]["stack"], &event["stack"]].into_iter().find_map(Value::as_array);
        if let Some(stack) = stack {
            stacks.entry(id.clone()).or_insert_with(|| frames(stack, &names));
        }
        let known = all.iter().any(|t| t.id == id);
        if !known && super::language(&payload).is_some() {
            all.push(Traced { id, text: payload, before: n as u32 + 1, frames: vec![] });
        }
    }
    for traced in &mut all {
        traced.frames = stacks.get(&traced.id).cloned().unwrap_or_default();
    }
    all
}

/// `V0401 12:30:59.123000 4242 torch/_logging/structured.py:28] {…}`: what the line says, where it is one of these.
fn event(line: &str) -> Option<Value> {
    let json = line.starts_with('V').then(|| line.split_once("] {")).flatten()?.1;
    crate::json::parse(format!("{{{json}")).ok().filter(|v| v.as_object().is_some())
}

/// `0/1`, with what else tells compilations apart.
fn compilation(event: &Value) -> String {
    let number = |key: &str| event[key].as_u64();
    let frame = [number("frame_id"), number("frame_compile_id")].map(|n| n.map_or("-".into(), |n| n.to_string()));
    let of = |key: &str, what: &str| number(key).filter(|n| *n > 0).map_or(String::new(), |n| format!(" {what} {n}"));
    let autograd = number("compiled_autograd_id").map_or(String::new(), |n| format!("!{n}/"));
    format!("{autograd}{}/{}{}{}", frame[0], frame[1], of("attempt", "attempt"), of("rank", "rank"))
}

/// A stack stands from the outermost call on.
fn frames(stack: &[Value], names: &HashMap<u64, String>) -> Vec<Line> {
    let one = |f: &Value| {
        let file = f["filename"].as_u64().and_then(|n| names.get(&n).cloned());
        let file = file.or_else(|| f["filename"].as_str().map(str::to_owned))?;
        Some(Line { file, line: f["line"].as_u64().and_then(|n| u32::try_from(n).ok())?, column: 0 })
    };
    stack.iter().rev().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "module @m {\n  func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n    return %arg0 : tensor<4xf32>\n  }\n}\n";

    fn trace() -> String {
        let payload: String = MODULE.lines().map(|l| format!("\t{l}\n")).collect();
        let line = |json: &str| format!("V1122 10:00:00.000000 7 torch/_logging/structured.py:28] {json}\n");
        let artifact = |compile: u32| {
            let of = format!("\"frame_id\": 0, \"frame_compile_id\": {compile}, \"attempt\": 0, \"rank\": 0");
            line(&format!(
                "{{\"artifact\": {{\"name\": \"stablehlo\", \"encoding\": \"string\"}}, {of}, \"has_payload\": \"ab\"}}"
            )) + &payload
        };
        let start = "{\"dynamo_start\": {\"stack\": [{\"line\": 30, \"name\": \"main\", \"filename\": 1}, {\"line\": 12, \"name\": \"step\", \"filename\": 1}]}, \"frame_id\": 0, \"frame_compile_id\": 0}";
        line("{\"str\": [\"/home/me/train.py\", 1]}") + &line(start) + &artifact(0) + &artifact(0) + &artifact(1)
    }

    #[test]
    fn each_compilation_gives_its_first_program() {
        let all = programs(&trace());
        assert_eq!(all.iter().map(|t| t.id.as_str()).collect::<Vec<_>>(), ["0/0", "0/1"]);
        assert_eq!((all[0].text.as_str(), all[0].before), (MODULE, 3));
        let places: Vec<(&str, u32)> = all[0].frames.iter().map(|l| (l.file.as_str(), l.line)).collect();
        assert_eq!(places, [("/home/me/train.py", 12), ("/home/me/train.py", 30)]);
        assert!(all[1].frames.is_empty());
    }

    #[test]
    fn what_is_no_trace_gives_nothing() {
        for text in ["", MODULE, "V1122 x] {", "V1122 x] {\"a\": 1}\n\tmodule", "V] {\"str\": [1]}\n", "\t\t"] {
            assert!(programs(text).is_empty(), "{text}");
        }
    }
}
