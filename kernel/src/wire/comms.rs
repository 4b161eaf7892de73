//! Comms that front ends open. One target is known: `xlazy.events`, to which every sync and compilation is told as it happens.
use super::iopub::Iopub;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The stream of syncs and compilations, as `docs/insight.schema.json` has them.
const EVENTS: &str = "xlazy.events";

/// Comms that may be open at once: whoever opens more is not listening.
const MOST: usize = 64;

/// The open comms of [`EVENTS`], by id.
#[derive(Default)]
pub struct Comms(Mutex<BTreeSet<String>>);

impl Comms {
    fn open_ones(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` where there is no such target or no room; else whether events are wanted from now on, where that is new.
    pub fn open(&self, id: &str, target: &str) -> Option<Option<bool>> {
        let mut open = self.open_ones();
        if target != EVENTS || id.is_empty() || open.len() >= MOST {
            return None;
        }
        let first = open.is_empty();
        open.insert(id.to_owned());
        Some(first.then_some(true))
    }

    /// Whether events are wanted no more, where that is new.
    pub fn close(&self, id: &str) -> Option<bool> {
        let mut open = self.open_ones();
        (open.remove(id) && open.is_empty()).then_some(false)
    }

    pub fn is_open(&self, id: &str) -> bool {
        self.open_ones().contains(id)
    }

    /// The open comms, of one target where one is named.
    pub fn info(&self, target: &str) -> Value {
        let open = self.open_ones();
        let wanted = target.is_empty() || target == EVENTS;
        let one = |id: &String| (id.clone(), json!({"target_name": EVENTS}));
        let comms: Map<String, Value> = open.iter().filter(|_| wanted).map(one).collect();
        json!({"status": "ok", "comms": comms})
    }

    /// Tells them something that a cell did.
    pub fn tell(&self, iopub: &Iopub, parent: &Arc<Value>, told: &Value) {
        for id in self.open_ones().iter() {
            iopub.send(parent, "comm_msg", json!({"comm_id": id, "data": told}));
        }
    }
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
        let target = json!({"target_name": EVENTS});
        assert_eq!(comms.info(""), json!({"status": "ok", "comms": {"a": target, "b": target}}));
        assert_eq!(comms.info("other")["comms"], json!({}));
        assert_eq!((comms.close("c"), comms.close("a"), comms.close("b")), (None, None, Some(false)));
        for i in 0..MOST {
            assert!(comms.open(&i.to_string(), EVENTS).is_some());
        }
        assert_eq!(comms.open("more", EVENTS), None);
    }
}
