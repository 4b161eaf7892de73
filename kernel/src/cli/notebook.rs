//! A notebook document (nbformat 4.5): its cells, and the outputs that a run writes into them.
use super::bundle::{is_json, mime_json};
use super::events::stream_name;
use super::widgets::{self, Widgets};
use crate::engine::{Event, Failure};
use serde::Serialize;
use serde_json::{Map, Value, json};
use xlazy_mime::Bundle;

pub const DISPLAY_NAME: &str = "xlazy (Rust, lazy tensors on XLA)";

/// A notebook being run. Everything in it that a run does not write stays as it was.
pub struct Notebook {
    document: Map<String, Value>,
    /// Where displays that can be updated are: id, cell index, output index.
    displays: Vec<(String, usize, usize)>,
    /// The cell whose outputs go with its next output.
    clear_at_next: Option<usize>,
    widgets: Widgets,
}

/// A code cell that is to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeCell {
    /// Its place among all cells.
    pub index: usize,
    pub id: String,
    pub code: String,
    /// Tagged `raises-exception`: an error is what it should show, and does not end the run.
    pub may_fail: bool,
}

impl Notebook {
    /// Reads a document of nbformat 4 and brings it to 4.5, where every cell has an id.
    pub fn parse(text: &str) -> Result<Notebook, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| format!("this is not JSON: {e}"))?;
        let Value::Object(mut document) = value else { return Err("this is JSON, but no notebook".to_owned()) };
        match document.get("nbformat").and_then(Value::as_u64) {
            Some(4) => {}
            Some(v) => return Err(format!("nbformat {v} is not supported: save the notebook in format 4")),
            None => return Err("this is JSON, but no notebook: it has no `nbformat`".to_owned()),
        }
        let minor = document.get("nbformat_minor").and_then(Value::as_u64).unwrap_or(0);
        document.insert("nbformat_minor".into(), minor.max(5).into());
        let Some(cells) = document.get("cells").and_then(Value::as_array) else {
            return Err("the notebook has no `cells`".to_owned());
        };
        if let Some(i) = cells.iter().position(|c| !c.is_object()) {
            return Err(format!("cell {} of the notebook is no cell: it is no object with a `source`", i + 1));
        }
        let mut notebook =
            Notebook { document, displays: Vec::new(), clear_at_next: None, widgets: Widgets::default() };
        notebook.give_ids();
        Ok(notebook)
    }

    /// The cells to run, in order: code cells that are not blank and not tagged `skip-execution`.
    pub fn code_cells(&self) -> Vec<CodeCell> {
        let code = |(index, cell): (usize, &Value)| {
            let code = joined(cell.get("source")?);
            let wanted = cell["cell_type"] == "code" && !code.trim().is_empty() && !has_tag(cell, "skip-execution");
            let id = cell["id"].as_str().unwrap_or_default().to_owned();
            wanted.then(|| CodeCell { index, id, code, may_fail: has_tag(cell, "raises-exception") })
        };
        self.cells().iter().enumerate().filter_map(code).collect()
    }

    /// Takes every output and execution count out, as before a first run; skipped cells keep theirs.
    pub fn clear_outputs(&mut self) {
        self.displays.clear();
        if let Some(Value::Object(metadata)) = self.document.get_mut("metadata") {
            metadata.remove("widgets");
        }
        for cell in self.cells_mut() {
            if cell["cell_type"] == "code" && !has_tag(cell, "skip-execution") {
                cell["outputs"] = json!([]);
                cell["execution_count"] = Value::Null;
            }
        }
    }

    pub fn set_execution_count(&mut self, cell: usize, count: u64) {
        self.cells_mut()[cell]["execution_count"] = count.into();
    }

    /// Writes one event into the cell's outputs.
    pub fn add_event(&mut self, cell: usize, count: u64, event: &Event) {
        match event {
            Event::Stream { stderr, text } => self.add_stream(cell, stream_name(*stderr), text),
            Event::Told(text) => self.add_stream(cell, stream_name(false), text),
            Event::Display { bundle, id: Some(id), update: true } => self.update(id, bundle),
            Event::Display { update: true, .. } => {}
            Event::Display { bundle, id, update: false } => {
                let at = self.push(cell, output("display_data", bundle));
                if let Some(id) = id {
                    self.displays.push((id.clone(), cell, at));
                }
            }
            Event::Result(bundle) => {
                let mut output = output("execute_result", bundle);
                output["execution_count"] = count.into();
                self.push(cell, output);
            }
            // As JupyterLab does it: a notebook has no pager.
            Event::Page(bundle) => {
                self.push(cell, output("display_data", bundle));
            }
            Event::ClearOutput { wait: true } => self.clear_at_next = Some(cell),
            Event::ClearOutput { wait: false } => self.clear(cell),
            Event::Comm(message) => self.widgets.hear(message),
            // Headless there is no next cell to be written, so it is what this one says.
            Event::NextInput(text) => {
                self.push(cell, output("display_data", &Bundle::text(text)));
            }
            Event::Input { .. } | Event::Insight { .. } => {}
        }
    }

    pub fn add_error(&mut self, cell: usize, failure: &Failure) {
        let traceback = crate::terminal::failure_lines(failure);
        self.push(
            cell,
            json!({
                "output_type": "error", "ename": failure.name, "evalue": failure.message, "traceback": traceback,
            }),
        );
    }

    /// Says in the metadata which kernel the notebook is for.
    pub fn set_kernel(&mut self) {
        let metadata = self.document.entry("metadata").or_insert_with(|| json!({}));
        if let Value::Object(metadata) = metadata {
            let kernel = json!({"name": "xlazy", "display_name": DISPLAY_NAME, "language": "rust"});
            metadata.insert("kernelspec".into(), kernel);
            let language = metadata.entry("language_info").or_insert(Value::Null);
            if !language.is_object() {
                *language = json!({});
            }
            for (key, value) in [
                ("name", "rust"),
                ("file_extension", ".rs"),
                ("mimetype", "text/rust"),
                ("codemirror_mode", "rust"),
                ("pygments_lexer", "rust"),
            ] {
                language[key] = value.into();
            }
        }
    }

    /// The document as Jupyter writes it: one space of indent, texts as lists of lines, a line break at the end.
    pub fn to_text(&self) -> String {
        let mut document = Value::Object(self.document.clone());
        if let Some(widgets) = self.widgets.document() {
            document["metadata"]["widgets"] = json!({ widgets::MIME: widgets });
        }
        for cell in document["cells"].as_array_mut().into_iter().flatten() {
            split_lines(&mut cell["source"]);
            for output in cell.get_mut("outputs").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(text) = output.get_mut("text") {
                    split_lines(text);
                }
                for (mime, content) in output.get_mut("data").and_then(Value::as_object_mut).into_iter().flatten() {
                    if is_text(mime) {
                        split_lines(content);
                    }
                }
            }
        }
        let mut bytes = Vec::new();
        let indent = serde_json::ser::PrettyFormatter::with_indent(b" ");
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, indent);
        document.serialize(&mut serializer).expect("a JSON value can be written to memory");
        bytes.push(b'\n');
        String::from_utf8(bytes).expect("JSON is UTF-8")
    }

    /// All cells, in order.
    pub fn cells(&self) -> &[Value] {
        self.document["cells"].as_array().map_or(&[], Vec::as_slice)
    }

    fn cells_mut(&mut self) -> &mut [Value] {
        self.document["cells"].as_array_mut().map_or(&mut [], Vec::as_mut_slice)
    }

    fn outputs(&mut self, cell: usize) -> &mut Vec<Value> {
        let outputs = &mut self.cells_mut()[cell]["outputs"];
        if !outputs.is_array() {
            *outputs = json!([]);
        }
        outputs.as_array_mut().expect("it has just been made one")
    }

    fn clear(&mut self, cell: usize) {
        self.outputs(cell).clear();
        self.displays.retain(|(_, c, _)| *c != cell);
    }

    fn clear_if_due(&mut self, cell: usize) {
        if self.clear_at_next.take() == Some(cell) {
            self.clear(cell);
        }
    }

    fn push(&mut self, cell: usize, output: Value) -> usize {
        self.clear_if_due(cell);
        let outputs = self.outputs(cell);
        outputs.push(output);
        outputs.len() - 1
    }

    fn add_stream(&mut self, cell: usize, name: &str, text: &str) {
        self.clear_if_due(cell);
        match self.outputs(cell).last_mut() {
            Some(last) if last["output_type"] == "stream" && last["name"] == name => {
                let all = joined(&last["text"]) + text;
                last["text"] = all.into();
            }
            _ => {
                self.push(cell, json!({"output_type": "stream", "name": name, "text": text}));
            }
        }
    }

    /// Changes every output that carries the id, in whatever cell it is.
    fn update(&mut self, id: &str, bundle: &Bundle) {
        for (_, cell, at) in self.displays.clone().into_iter().filter(|(known, ..)| known == id) {
            self.outputs(cell)[at]["data"] = Value::Object(mime_json(bundle));
        }
    }

    fn give_ids(&mut self) {
        let mut taken: Vec<String> =
            self.cells().iter().filter_map(|c| Some(c.get("id")?.as_str()?.to_owned())).collect();
        for (index, cell) in self.cells_mut().iter_mut().enumerate() {
            if cell.get("id").is_none() {
                let mut id = format!("cell-{}", index + 1);
                while taken.contains(&id) {
                    id.push('x');
                }
                cell["id"] = id.clone().into();
                taken.push(id);
            }
        }
    }
}

fn output(kind: &str, bundle: &Bundle) -> Value {
    json!({"output_type": kind, "data": mime_json(bundle), "metadata": {}})
}

fn has_tag(cell: &Value, tag: &str) -> bool {
    cell.pointer("/metadata/tags").and_then(Value::as_array).is_some_and(|tags| tags.iter().any(|t| t == tag))
}

/// The text types that Jupyter splits into lines; base64 and JSON stay whole.
fn is_text(mime: &str) -> bool {
    !is_json(mime) && (mime.starts_with("text/") || mime == "image/svg+xml" || mime == "application/javascript")
}

/// A multi-line string, which nbformat allows to be one string or a list of lines.
pub fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

fn split_lines(value: &mut Value) {
    if let Value::String(text) = value {
        *value = text.split_inclusive('\n').collect();
    }
}
