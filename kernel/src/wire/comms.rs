//! Comms. Front ends open two: `xlazy.events`, to which every sync and compilation is told as it happens, and `jupyter.widget.control`,
//! which asks for all widgets at once. Cells open one for each widget (`jupyter.widget`).
use super::iopub::{Beside, Iopub};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The stream of syncs and compilations, as `docs/insight.schema.json` has them.
const EVENTS: &str = "xlazy.events";
/// Who asks for all widgets.
const CONTROL: &str = "jupyter.widget.control";
const WIDGET: &str = "jupyter.widget";
/// Of the messages of widgets.
const WIDGET_PROTOCOL: &str = "2.1.0";
/// How a widget is shown.
pub const WIDGET_VIEW: &str = "application/vnd.jupyter.widget-view+json";

/// Comms that front ends may have open at once: whoever opens more is not listening.
const MOST: usize = 64;

#[derive(Default)]
pub struct Comms(Mutex<Open>);

/// The open comms, by id.
#[derive(Default)]
struct Open {
    events: BTreeSet<String>,
    controls: BTreeSet<String>,
    widgets: BTreeMap<String, Place>,
}

/// The cell that shows a widget: what is done to the widget prints there.
#[derive(Clone)]
pub struct Place {
    pub parent: Arc<Value>,
    pub cell: u64,
}

/// Whom a message of a front end is for.
pub enum For {
    Events,
    Control,
    Widget(Place),
}

impl Comms {
    fn open_ones(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` where there is no such target or no room; else whether events are wanted from now on, where that is new.
    pub fn open(&self, id: &str, target: &str) -> Option<Option<bool>> {
        let mut open = self.open_ones();
        if id.is_empty() || open.events.len() + open.controls.len() >= MOST {
            return None;
        }
        match target {
            EVENTS => {
                let first = open.events.is_empty();
                open.events.insert(id.to_owned());
                Some(first.then_some(true))
            }
            CONTROL => {
                open.controls.insert(id.to_owned());
                Some(None)
            }
            _ => None,
        }
    }

    /// Whether events are wanted no more, where that is new.
    pub fn close(&self, id: &str) -> Option<bool> {
        let mut open = self.open_ones();
        open.controls.remove(id);
        open.widgets.remove(id);
        (open.events.remove(id) && open.events.is_empty()).then_some(false)
    }

    /// Nobody where the comm is not open.
    pub fn whose(&self, id: &str) -> Option<For> {
        let open = self.open_ones();
        match open.widgets.get(id) {
            Some(place) => Some(For::Widget(place.clone())),
            None if open.events.contains(id) => Some(For::Events),
            None => open.controls.contains(id).then_some(For::Control),
        }
    }

    /// The open comms, of one target where one is named.
    pub fn info(&self, target: &str) -> Value {
        let open = self.open_ones();
        let events = open.events.iter().map(|id| (id, EVENTS));
        let controls = open.controls.iter().map(|id| (id, CONTROL));
        let widgets = open.widgets.keys().map(|id| (id, WIDGET));
        let wanted = |(_, name): &(&String, &str)| target.is_empty() || target == *name;
        let one = |(id, name): (&String, &str)| (id.clone(), json!({"target_name": name}));
        let comms: Map<String, Value> = events.chain(controls).chain(widgets).filter(wanted).map(one).collect();
        json!({"status": "ok", "comms": comms})
    }

    /// Tells the listeners something that a cell did.
    pub fn tell(&self, iopub: &Iopub, parent: &Arc<Value>, told: &Value) {
        for id in self.open_ones().events.iter() {
            iopub.send(parent, "comm_msg", json!({"comm_id": id, "data": told}));
        }
    }

    /// Passes a message of a widget on to the front ends.
    pub fn say(&self, iopub: &Iopub, parent: &Arc<Value>, cell: u64, message: &Value) {
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        let mut content = json!({"comm_id": id, "data": message["data"]});
        let kind = match message["type"].as_str() {
            Some("comm_open") => {
                self.open_ones().widgets.insert(id, Place { parent: parent.clone(), cell });
                content["target_name"] = WIDGET.into();
                "comm_open"
            }
            Some("comm_close") => {
                self.open_ones().widgets.remove(&id);
                "comm_close"
            }
            _ => "comm_msg",
        };
        iopub.send_with(parent, kind, content, beside(&message["buffers"]));
    }

    /// A cell shows something: where that is a widget, what is done to it prints there from now on.
    pub fn shown(&self, view: &str, parent: &Arc<Value>, cell: u64) {
        let view: Value = serde_json::from_str(view).unwrap_or_default();
        let id = view["model_id"].as_str().unwrap_or_default();
        if let Some(place) = self.open_ones().widgets.get_mut(id) {
            *place = Place { parent: parent.clone(), cell };
        }
    }
}

/// The binary part of a widget's message.
pub fn beside(buffers: &Value) -> Beside {
    let decoded = |text: &Value| BASE64_STANDARD.decode(text.as_str()?).ok().map(Bytes::from);
    let buffers = buffers.as_array().into_iter().flatten().filter_map(decoded).collect();
    Beside { metadata: json!({"version": WIDGET_PROTOCOL}), buffers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_to_come_and_the_last_to_go_change_what_is_told() {
        let comms = Comms::default();
        assert_eq!(comms.open("a", "jupyter.widget"), None);
        assert_eq!(comms.open("", EVENTS), None);
        assert_eq!((comms.open("a", EVENTS), comms.open("b", EVENTS)), (Some(Some(true)), Some(None)));
        assert_eq!(comms.open("c", CONTROL), Some(None));
        let target = json!({"target_name": EVENTS});
        let control = json!({"target_name": CONTROL});
        assert_eq!(comms.info(""), json!({"status": "ok", "comms": {"a": target, "b": target, "c": control}}));
        assert_eq!(comms.info("other")["comms"], json!({}));
        assert_eq!((comms.close("c"), comms.close("a"), comms.close("b")), (None, None, Some(false)));
        for i in 0..MOST {
            assert!(comms.open(&i.to_string(), EVENTS).is_some());
        }
        assert_eq!((comms.open("more", EVENTS), comms.open("more", CONTROL)), (None, None));
    }
}
