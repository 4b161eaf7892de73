//! What front ends do to widgets: their state changes at once, also while a cell runs; who waits for it is called when it is their turn.
use super::between_cells;
use super::comms::{For, Place, beside};
use super::content::{self, text};
use super::message::Message;
use super::shell::Shell;
use crate::engine::spill::{Limits, Spill};
use crate::engine::{HANDLERS, Request};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

impl Shell {
    /// A message on a comm; one that is not open has none to hear it.
    pub fn comm_message(&self, message: &Message) {
        match self.hub.comms.whose(&text(&message.content, "comm_id")) {
            Some(For::Events) => self.asked_for_a_fix(message),
            Some(For::Control) => self.asked_for_widgets(message),
            Some(For::Widget(place)) => self.touched(message, &place),
            None => {}
        }
    }

    fn widget(&self, asked: &Value) -> Value {
        self.ask(|engine| engine.widget(asked).unwrap_or(Value::Null))
    }

    /// A page that was loaded again asks which widgets there are.
    fn asked_for_widgets(&self, message: &Message) {
        let asks = message.content.get("data").is_some_and(|data| data["method"] == "request_states");
        let mut told = if asks { self.widget(&json!({"states": true})) } else { Value::Null };
        let Some(states) = told.as_object_mut() else { return };
        let buffers = states.remove("buffers").unwrap_or_default();
        let content = json!({"comm_id": message.content["comm_id"], "data": told});
        self.hub.iopub.send_with(&message.header, "comm_msg", content, beside(&buffers));
    }

    /// A hand has changed a widget, or its front end asks for its state.
    fn touched(&self, message: &Message, place: &Place) {
        let turn = self.hub.turns.asked();
        let id = text(&message.content, "comm_id");
        let buffers: Vec<String> = message.buffers.iter().map(|b| BASE64_STANDARD.encode(b)).collect();
        let data = message.content.get("data").cloned().unwrap_or_default();
        let answer = self.widget(&json!({"id": id, "data": data, "buffers": buffers}));
        let comms = &self.hub.comms;
        if answer["known"] == false {
            // It went with its session.
            comms.close(&id);
            return self.hub.iopub.send(&message.header, "comm_close", json!({"comm_id": id, "data": {}}));
        }
        for back in answer["messages"].as_array().into_iter().flatten() {
            comms.say(&self.hub.iopub, &message.header, place.cell, back);
        }
        if answer["call"] == true {
            self.call_handlers(message, place, turn);
        }
    }

    /// Runs what waits for it; what that shows stands below the cell of the widget.
    fn call_handlers(&self, message: &Message, place: &Place, turn: u64) {
        let request = Request { code: HANDLERS.into(), silent: true, cell: place.cell, ..Request::default() };
        let mut spill = Spill::new(Limits::LIVE, &self.hub.spill, place.cell);
        let mut show = |event| between_cells::show(&self.hub, (&place.parent, place.cell), event);
        let ran = self.ran(|engine| {
            let mut events = |event| spill.pass(event, &mut show);
            self.run_cell(engine, &request, (turn, message), &mut events)
        });
        spill.end(&mut show);
        if let Some(failure) = content::failure_of(ran) {
            self.hub.iopub.send(&place.parent, "error", content::error(&failure, json!({})));
        }
    }
}
