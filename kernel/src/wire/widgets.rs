//! What front ends do to widgets: their state changes at once, also while a cell runs; who waits for it is called when it is their turn.
use super::between_cells;
use super::comms::{For, Place, beside};
use super::content::{self, text};
use super::hands::Call;
use super::message::Message;
use super::shell::Shell;
use super::subshells::Arrival;
use crate::engine::spill::{Limits, Spill};
use crate::engine::{HANDLERS, Request};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use std::sync::mpsc::Receiver;

impl Shell {
    /// Has widgets change as hands change them, until nobody can any more.
    pub fn follow_hands(self, moves: Receiver<Arrival>) {
        for Arrival { number, message } in moves {
            let id = text(&message.content, "comm_id");
            self.hub.iopub.status(&message.header, "busy");
            let place = match self.hub.comms.whose(&id) {
                Some(For::Widget(place)) if self.touched(&message, &place) => place,
                _ => {
                    self.hub.hands.done(&[number]);
                    self.hub.iopub.status(&message.header, "idle");
                    continue;
                }
            };
            // A front end sends the next move when this one is over. What a cell that runs is to see may not wait for its end.
            let waits = self.hub.turns.try_take().is_none();
            if waits {
                self.hub.iopub.status(&message.header, "idle");
            }
            let untold = if waits { vec![] } else { vec![message.header.clone()] };
            self.hub.hands.call(Call { id, numbers: vec![number], untold, place });
        }
    }

    /// Calls who waits for what hands have done, when it is their turn.
    pub fn run_handlers(self) {
        loop {
            let call = self.hub.hands.next();
            self.call_handlers(&call);
            self.hub.hands.done(&call.numbers);
            call.untold.iter().for_each(|header| self.hub.iopub.status(header, "idle"));
        }
    }

    /// A message of a front end on one of its own comms; one that is not open has none to hear it.
    pub fn comm_message(&self, message: &Message) {
        match self.hub.comms.whose(&text(&message.content, "comm_id")) {
            Some(For::Events) => self.asked_for_a_fix(message),
            Some(For::Control) => self.asked_for_widgets(message),
            Some(For::Widget(_)) | None => {}
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

    /// A hand has changed a widget, or its front end asks for its state; whether somebody waits for that.
    fn touched(&self, message: &Message, place: &Place) -> bool {
        let id = text(&message.content, "comm_id");
        let buffers: Vec<String> = message.buffers.iter().map(|b| BASE64_STANDARD.encode(b)).collect();
        let data = message.content.get("data").cloned().unwrap_or_default();
        let answer = self.widget(&json!({"id": id, "data": data, "buffers": buffers}));
        let comms = &self.hub.comms;
        if answer["known"] == false {
            // It went with its session.
            comms.close(&id);
            self.hub.iopub.send(&message.header, "comm_close", json!({"comm_id": id, "data": {}}));
            return false;
        }
        for back in answer["messages"].as_array().into_iter().flatten() {
            comms.say(&self.hub.iopub, &message.header, place.cell, back);
        }
        answer["call"] == true
    }

    /// Runs what waits for a widget; what that shows stands below the cell that shows it.
    fn call_handlers(&self, call: &Call) {
        let place = &call.place;
        let request = Request { code: HANDLERS.into(), silent: true, cell: place.cell, ..Request::default() };
        let mut spill = Spill::new(Limits::LIVE, &self.hub.spill, place.cell);
        let mut show = |event| between_cells::show(&self.hub, (&place.parent, place.cell), event);
        let ran = self.ran(|engine| {
            let _turn = self.hub.turns.take();
            // An interrupt that came while it waited was for the cell that ran: the widget has moved, and code is to hear of it.
            self.hub.turns.begin_anew();
            // Others that wait are of other cells.
            engine.widget(&json!({"id": call.id, "next": true}));
            engine.execute(&request, &mut |event| spill.pass(event, &mut show))
        });
        spill.end(&mut show);
        if let Some(failure) = content::failure_of(ran) {
            self.hub.iopub.send(&place.parent, "error", content::error(&failure, json!({})));
        }
    }
}
