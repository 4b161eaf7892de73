//! The shell channel: one thread takes its requests in order, and runs the cells.
use super::comms::{For, WIDGET_VIEW};
use super::content::{self, Execute, byte_offset, number, text};
use super::history::History;
use super::hub::Hub;
use super::message::{Message, timestamp};
use super::subshells::{Arrival, unknown};
use crate::engine::spill::{Limits, Spill};
use crate::engine::{Completions, Engine, Event, Failure, Reply, Request};
use jupyter_protocol::ExecutionCount;
use jupyter_protocol::messaging::{ClearOutput, ExecuteInput};
use serde_json::{Map, Value, json};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::SystemTime;
use tokio::sync::oneshot;
use xlazy_mime::Bundle;

/// Insight events a reply carries along; a cell can cause any number.
const INSIGHT_LIMIT: usize = 200;

pub struct Shell {
    pub(super) hub: Arc<Hub>,
    history: History,
    /// The subshell's; None for the main one.
    id: Option<String>,
    /// The number of the last cell that got one.
    count: u64,
    /// Execute requests up to this arrival are not run, because a cell before them failed.
    abort_through: u64,
}

impl Shell {
    pub fn new(hub: Arc<Hub>, history: History, id: Option<String>) -> Shell {
        Shell { hub, history, id, count: 0, abort_through: 0 }
    }

    /// Takes requests until nobody can send any.
    pub fn run(mut self, requests: Receiver<Arrival>) {
        for arrival in requests {
            let header = arrival.message.header.clone();
            self.hub.iopub.status(&header, "busy");
            self.handle(&arrival);
            self.hub.iopub.status(&header, "idle");
        }
    }

    fn handle(&mut self, arrival: &Arrival) {
        let message = &arrival.message;
        let asked = &message.content;
        let code = || text(asked, "code");
        let (reply_type, reply) = match message.msg_type.as_str() {
            "execute_request" if arrival.number <= self.abort_through => {
                ("execute_reply", json!({"status": "aborted"}))
            }
            "execute_request" => return self.execute(arrival),
            "kernel_info_request" => return self.hub.kernel_info(&self.hub.shell, message),
            "is_complete_request" => ("is_complete_reply", self.ask(|e| content::completeness(e.is_complete(&code())))),
            "complete_request" => ("complete_reply", self.complete(asked)),
            "inspect_request" => {
                let (code, level) = (code(), number(asked, "detail_level").unwrap_or(0).clamp(0, 1));
                let cursor = cursor(asked, &code);
                ("inspect_reply", self.ask(|e| content::inspection(e.inspect(&code, cursor, level as u8))))
            }
            "history_request" => ("history_reply", content::history(self.history.ask(asked))),
            "comm_info_request" => ("comm_info_reply", self.hub.comms.info(&text(asked, "target_name"))),
            "comm_open" => return self.open_comm(message),
            "comm_close" => return self.listen(self.hub.comms.close(&text(asked, "comm_id"))),
            "comm_msg" => return self.comm_message(message),
            other => return super::log(format_args!("shell: no answer to a message of type {other:?}")),
        };
        self.hub.reply(&self.hub.shell, message, reply_type, &reply);
    }

    /// Asks the engine; one that did not start, or that panics, answers with an error.
    pub(super) fn ask(&self, question: impl FnOnce(&dyn Engine) -> Value) -> Value {
        let asked = match self.hub.engine() {
            Ok(engine) => catch_unwind(AssertUnwindSafe(|| question(engine.as_ref()))).map_err(internal),
            Err(failure) => Err(failure.clone()),
        };
        asked.unwrap_or_else(|failure| content::error(&failure, json!({"status": "error"})))
    }

    fn complete(&self, asked: &Map<String, Value>) -> Value {
        let code = text(asked, "code");
        let cursor = cursor(asked, &code);
        self.ask(|engine| {
            let found = engine.complete(&code, cursor);
            // A range that does not fit the code would make the front end replace the wrong text.
            let fits = found.start <= found.end && found.end <= code.len();
            let found = if fits { found } else { Completions { start: cursor, end: cursor, matches: found.matches } };
            content::completions(&code, &found)
        })
    }

    /// One target is known; a comm with an unknown target is closed at once.
    fn open_comm(&self, message: &Message) {
        let (id, target) = (text(&message.content, "comm_id"), text(&message.content, "target_name"));
        match self.hub.comms.open(&id, &target) {
            Some(first) => self.listen(first),
            None => {
                super::log(format_args!("shell: no comm target {target:?}"));
                self.hub.iopub.send(&message.header, "comm_close", json!({"comm_id": id, "data": {}}));
            }
        }
    }

    /// A front end asks by a comm of the stream for the cells as an explanation would have them: `{"fix": 3}`, of the last one that has a
    /// fix `{"fix": null}`. The answer is what `%fix --json` gives, or an `error`. Other messages have none.
    pub(super) fn asked_for_a_fix(&self, message: &Message) {
        let id = text(&message.content, "comm_id");
        let Some(fix) = message.content.get("data").and_then(|data| data.get("fix")) else { return };
        let number = fix.as_u64().map(|n| format!(" {n}")).unwrap_or_default();
        let request = Request { code: format!("%fix{number} --json"), silent: true, ..Request::default() };
        let answer = self.ask(|engine| {
            let mut made = Value::Null;
            let mut take = |event: Event| {
                if let Event::Display { bundle, .. } | Event::Result(bundle) = event
                    && let Some(json) = bundle.get("application/json")
                {
                    made = serde_json::from_str(json).unwrap_or_default();
                }
            };
            match content::failure_of(engine.execute(&request, &mut take)) {
                None => json!({ "fix": made }),
                Some(failure) => json!({ "error": failure.message }),
            }
        });
        self.hub.iopub.send(&message.header, "comm_msg", json!({"comm_id": id, "data": answer}));
    }

    /// Has each sync and compilation told as it happens, or no longer, where that changes.
    fn listen(&self, changes: Option<bool>) {
        if let (Some(on), Ok(engine)) = (changes, self.hub.engine()) {
            engine.stream(on);
        }
    }

    fn execute(&mut self, arrival: &Arrival) {
        let message = &arrival.message;
        self.hub.hands.heard_before(arrival.number);
        let asked = Execute::read(&message.content);
        let started = timestamp(SystemTime::now());
        let cell = self.count + 1;
        let iopub = &self.hub.iopub;
        let turn = self.hub.turns.asked();
        if !asked.silent {
            let input = ExecuteInput { code: asked.code.clone(), execution_count: ExecutionCount::new(cell as usize) };
            iopub.send(&message.header, "execute_input", content::typed(input));
        }
        let request = Request {
            code: asked.code.clone(),
            silent: asked.silent,
            store_history: asked.store_history,
            allow_stdin: asked.allow_stdin,
            cell,
        };
        let mut outputs = Outputs {
            hub: &self.hub,
            message,
            asked: &asked,
            cell,
            pages: vec![],
            insight: vec![],
            result: String::new(),
        };
        if !asked.silent
            && let Some(text) = self.history.trouble()
        {
            outputs.take(Event::Stream { stderr: true, text });
        }
        let mut spill = Spill::new(Limits::LIVE, &self.hub.spill, cell);
        let reply = self.ran(|engine| {
            let mut events = |event| spill.pass(event, &mut |event| outputs.take(event));
            self.run_cell(engine, &request, (turn, arrival), &mut events)
        });
        spill.end(&mut |event| outputs.take(event));
        let Outputs { pages, insight, result, .. } = outputs;
        self.hub.stop_asking(&self.id);
        if asked.store_history {
            self.count = cell;
            self.history.add(cell, &asked.code, &result);
        }
        let failure = content::failure_of(reply);
        let status = if failure.is_some() { "error" } else { "ok" };
        let mut content = json!({"status": status, "execution_count": cell, "payload": pages, "user_expressions": {}});
        match failure {
            Some(failure) => {
                if !asked.silent {
                    iopub.send(&message.header, "error", content::error(&failure, json!({})));
                }
                content = content::error(&failure, content);
                if asked.stop_on_error {
                    self.abort_what_waits();
                }
            }
            None => content["user_expressions"] = self.evaluate(&asked),
        }
        let mut metadata = json!({"started": started, "status": status, "dependencies_met": true});
        if !insight.is_empty() {
            metadata["xlazy"] = json!(insight);
        }
        self.hub.reply_with(&self.hub.shell, message, "execute_reply", &metadata, &content);
    }

    /// How a cell ended; in an engine that did not start, or that panics, with an error.
    pub(super) fn ran(&self, run: impl FnOnce(&dyn Engine) -> Reply) -> Reply {
        match self.hub.engine() {
            Ok(engine) => catch_unwind(AssertUnwindSafe(|| run(engine.as_ref())))
                .unwrap_or_else(|panic| Reply::Error(internal(panic))),
            Err(failure) => Reply::Error(failure.clone()),
        }
    }

    /// Runs a cell when it is its turn, or beside the one of another shell where that is possible.
    fn run_cell(
        &self,
        engine: &dyn Engine,
        request: &Request,
        (asked, arrival): (u64, &Arrival),
        events: &mut dyn FnMut(Event),
    ) -> Reply {
        let Hub { turns, hands, .. } = &*self.hub;
        let at_once = if hands.waits_before(arrival.number) { None } else { turns.try_take() };
        let _turn = match at_once {
            Some(turn) => turn,
            None => match engine.execute_beside(request, events) {
                Some(reply) => return reply,
                None => {
                    hands.called_before(arrival.number);
                    turns.take()
                }
            },
        };
        // While the engine was starting, or ran another cell, the interrupt could not be passed on for this one.
        if !turns.begin(asked) {
            return Reply::Interrupted;
        }
        super::between_cells::remember(&self.hub, &arrival.message, request);
        engine.execute(request, events)
    }

    fn evaluate(&self, asked: &Execute) -> Value {
        let evaluate = |expression: &str| self.ask(|engine| content::expression(engine.evaluate(expression)));
        asked.user_expressions.iter().map(|(name, expression)| (name.clone(), evaluate(expression))).collect()
    }

    /// Everything that has arrived by now is not run; what arrives later is.
    fn abort_what_waits(&mut self) {
        let (fence, passed) = oneshot::channel();
        if self.hub.fences.send(fence).is_ok() {
            let _ = passed.blocking_recv();
        }
        self.abort_through = self.hub.subshells.arrived();
    }
}

/// What a running cell shows, on its way out.
struct Outputs<'a> {
    hub: &'a Hub,
    message: &'a Message,
    asked: &'a Execute,
    cell: u64,
    pages: Vec<Value>,
    insight: Vec<Value>,
    /// The plain text of the result, for the history.
    result: String,
}

impl Outputs<'_> {
    /// What the runtime tells of its work: to the comms that listen as it happens, and in the reply, but for what is told of each
    /// sync.
    fn insight(&mut self, kind: String, json: String) {
        let detail = serde_json::from_str(&json).unwrap_or(Value::String(json));
        let told = json!({"kind": kind, "detail": detail});
        self.hub.comms.tell(&self.hub.iopub, &self.message.header, &told);
        if self.insight.len() < INSIGHT_LIMIT && !matches!(kind.as_str(), "sync" | "compilation") {
            self.insight.push(told);
        }
    }

    /// A widget belongs to the cell that shows it last.
    fn place(&self, bundle: &Bundle) {
        if let Some(view) = bundle.get(WIDGET_VIEW) {
            self.hub.comms.shown(view, &self.message.header, self.cell);
        }
    }

    fn take(&mut self, event: Event) {
        let (iopub, parent) = (&self.hub.iopub, &self.message.header);
        match event {
            Event::Input { prompt, password, answer } => match self.asked.allow_stdin {
                true => self.hub.ask(self.message, &prompt, password, answer),
                false => {
                    let refusal = "this front end does not allow a cell to ask for input (allow_stdin is false)";
                    let _ = answer.send(Err(refusal.into()));
                }
            },
            Event::Page(bundle) => {
                self.pages.push(json!({"source": "page", "data": content::data(&bundle), "start": 0}));
            }
            Event::NextInput(text) => {
                self.pages.push(json!({"source": "set_next_input", "text": text, "replace": false}));
            }
            Event::Insight { kind, json } => self.insight(kind, json),
            // A silent cell broadcasts nothing.
            _ if self.asked.silent => {}
            Event::Stream { stderr, text } => iopub.stream(parent, stderr, text),
            Event::Told(text) => iopub.stream(parent, false, text),
            Event::Display { bundle, id, update } => {
                self.place(&bundle);
                iopub.display(parent, &bundle, id, update);
            }
            Event::Comm(message) => self.hub.comms.say(iopub, parent, self.cell, &message),
            Event::Result(bundle) => {
                self.place(&bundle);
                self.result = bundle.plain().to_owned();
                let data = content::data(&bundle);
                let shown = json!({"execution_count": self.cell, "data": data, "metadata": {}});
                iopub.show(parent, "execute_result", shown, content::weight(&bundle));
            }
            Event::ClearOutput { wait } => iopub.show(parent, "clear_output", content::typed(ClearOutput { wait }), 0),
        }
    }
}

/// Hands a message of the channel to the shell that it names; what a hand does to a widget waits for none.
pub fn route(hub: &Hub, message: Message) {
    let widget = || hub.comms.whose(&text(&message.content, "comm_id"));
    if message.msg_type == "comm_msg" && matches!(widget(), Some(For::Widget(_))) {
        return hub.hands.moved(Arrival { number: hub.subshells.arrive(), message });
    }
    if let Some((message, id)) = hub.subshells.route(message) {
        refuse(hub, &message, &id);
    }
}

fn refuse(hub: &Hub, message: &Message, id: &str) {
    hub.iopub.status(&message.header, "busy");
    if let Some(kind) = message.msg_type.strip_suffix("_request") {
        let content = content::error(&unknown(id), json!({"status": "error"}));
        hub.reply(&hub.shell, message, &format!("{kind}_reply"), &content);
    }
    hub.iopub.status(&message.header, "idle");
}

fn cursor(asked: &Map<String, Value>, code: &str) -> usize {
    number(asked, "cursor_pos").map_or(code.len(), |at| byte_offset(code, at))
}

/// A panic in the engine is a bug of ours; the session goes on and the user learns of it.
fn internal(panic: Box<dyn Any + Send>) -> Failure {
    let message = match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (_, Some(text)) => (*text).to_owned(),
        _ => "a panic without a message".to_owned(),
    };
    Failure { name: "InternalError".into(), message: format!("xlazy itself failed: {message}"), traceback: vec![] }
}
