//! Output between cells: what threads write that outlive their cell is shown with the cell that ran last.
use super::content;
use super::hub::{Hub, Last};
use super::message::Message;
use crate::engine::spill::{Limits, Spill};
use crate::engine::{Engine, Event, Request};
use jupyter_protocol::messaging::ClearOutput;
use serde_json::Value;
use std::sync::{Arc, PoisonError};

/// A cell begins that can show something.
pub fn remember(hub: &Hub, message: &Message, request: &Request) {
    if !request.silent {
        let last = Last { parent: message.header.clone(), number: request.cell };
        *hub.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }
}

/// Has the engine send what comes between cells to the front ends.
pub fn listen(engine: &dyn Engine, hub: &Arc<Hub>) {
    // The hub holds the engine, which holds this.
    let hub = Arc::downgrade(hub);
    let mut current: Option<(Last, Spill)> = None;
    engine.listen(Box::new(move |event| {
        let Some(hub) = hub.upgrade() else { return };
        let last = hub.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let show = |last: &Last, event| show(&hub, (&last.parent, last.number), event);
        if let Some((before, spill)) = current.take_if(|(known, _)| !Arc::ptr_eq(&known.parent, &last.parent)) {
            spill.end(&mut |event| show(&before, event));
        }
        let (last, spill) = current.get_or_insert_with(|| {
            let spill = Spill::new(Limits::LIVE, &hub.spill, last.number);
            (last, spill)
        });
        spill.pass(event, &mut |event| show(last, event));
    }));
}

/// Shows with a cell that is over.
pub fn show(hub: &Hub, (parent, cell): (&Arc<Value>, u64), event: Event) {
    match event {
        Event::Stream { stderr, text } => hub.iopub.stream(parent, stderr, text),
        Event::Told(text) => hub.iopub.stream(parent, false, text),
        Event::Display { bundle, id, update } => hub.iopub.display(parent, &bundle, id, update),
        Event::ClearOutput { wait } => {
            hub.iopub.show(parent, "clear_output", content::typed(ClearOutput { wait }), 0);
        }
        Event::Comm(message) => hub.comms.say(&hub.iopub, parent, cell, &message),
        // A result, a page, a next cell, a question belong to a cell that runs.
        Event::Result(_) | Event::Page(_) | Event::NextInput(_) | Event::Input { .. } | Event::Insight { .. } => {}
    }
}
