//! The widgets of a notebook that runs headless, as its document keeps them for readers without a kernel (widget state, version 2.0).
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub const MIME: &str = "application/vnd.jupyter.widget-state+json";

/// What cells have told of their widgets, by id.
#[derive(Default)]
pub struct Widgets(BTreeMap<String, Model>);

#[derive(Default)]
struct Model {
    state: Map<String, Value>,
    /// Bytes in base64, with the path to their place.
    buffers: Vec<(Value, Value)>,
}

impl Widgets {
    /// Takes in a message of a widget.
    pub fn hear(&mut self, message: &Value) {
        let id = message["id"].as_str().unwrap_or_default();
        let data = &message["data"];
        match message["type"].as_str() {
            Some("comm_open") => drop(self.0.insert(id.to_owned(), Model::default())),
            Some("comm_close") => drop(self.0.remove(id)),
            _ if data["method"] != "update" => return,
            _ => {}
        }
        let Some(model) = self.0.get_mut(id) else { return };
        for (key, value) in data["state"].as_object().into_iter().flatten() {
            model.buffers.retain(|(path, _)| path[0] != *key);
            model.state.insert(key.clone(), value.clone());
        }
        let list = |key: &str| data[key].as_array().cloned().unwrap_or_default();
        let buffers = message["buffers"].as_array().cloned().unwrap_or_default();
        for (path, buffer) in list("buffer_paths").into_iter().zip(buffers) {
            model.buffers.retain(|(known, _)| *known != path);
            model.buffers.push((path, buffer));
        }
    }

    /// All of them, as a document's metadata has them; nothing where there are none.
    pub fn document(&self) -> Option<Value> {
        let one = |model: &Model| {
            let (mut state, own) =
                (Map::new(), |key: &str| matches!(key, "_model_name" | "_model_module" | "_model_module_version"));
            state.extend(model.state.iter().filter(|(key, _)| !own(key)).map(|(k, v)| (k.clone(), v.clone())));
            let name = |key: &str| model.state.get(key).cloned().unwrap_or_default();
            let mut one = json!({
                "model_name": name("_model_name"), "model_module": name("_model_module"),
                "model_module_version": name("_model_module_version"), "state": state,
            });
            if !model.buffers.is_empty() {
                let buffer = |(path, data): &(Value, Value)| json!({"path": path, "encoding": "base64", "data": data});
                one["buffers"] = model.buffers.iter().map(buffer).collect();
            }
            one
        };
        let state: Map<String, Value> = self.0.iter().map(|(id, model)| (id.clone(), one(model))).collect();
        (!state.is_empty()).then(|| json!({"version_major": 2, "version_minor": 0, "state": state}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_the_last_state_and_the_bytes() {
        let mut widgets = Widgets::default();
        assert_eq!(widgets.document(), None);
        let identity =
            json!({"_model_name": "AnyModel", "_model_module": "anywidget", "_model_module_version": "~0.11.*"});
        let mut state = identity.as_object().unwrap().clone();
        state.extend([("_esm".to_owned(), json!("e")), ("shape".to_owned(), json!([2]))]);
        let data = json!({"state": state, "buffer_paths": [["data"]]});
        widgets.hear(&json!({"type": "comm_open", "id": "plot", "data": data, "buffers": ["AADAPw=="]}));
        let data = json!({"method": "update", "state": {"shape": [3]}, "buffer_paths": [["data"]]});
        widgets.hear(&json!({"type": "comm_msg", "id": "plot", "data": data, "buffers": ["AADAPwAAIEAAAEDA"]}));
        let other = json!({"method": "echo_update", "state": {"shape": [4]}, "buffer_paths": []});
        widgets.hear(&json!({"type": "comm_msg", "id": "plot", "data": other, "buffers": []}));
        let plot = json!({
            "model_name": "AnyModel", "model_module": "anywidget", "model_module_version": "~0.11.*",
            "state": {"_esm": "e", "shape": [3]},
            "buffers": [{"path": ["data"], "encoding": "base64", "data": "AADAPwAAIEAAAEDA"}],
        });
        assert_eq!(widgets.document(), Some(json!({"version_major": 2, "version_minor": 0, "state": {"plot": plot}})));
        widgets.hear(&json!({"type": "comm_close", "id": "plot", "data": {}, "buffers": []}));
        assert_eq!(widgets.document(), None);
    }
}
