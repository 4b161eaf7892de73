//! Widgets: values that a notebook shows and a hand changes (Jupyter's widget messaging protocol 2.1, with the front end that the
//! `anywidget` package brings to JupyterLab, Notebook and VS Code). Nothing here is about a certain control.
mod controls;
mod state;

pub use controls::{Button, Checkbox, Dropdown, Number, Slider};
pub use state::{FromState, State};

use crate::cell::{Handle, handlers, link};
use crate::json::{Map, Value, json, parse};
use crate::{Error, Result};
use state::{join, split};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xlazy_mime::{Bundle, Rich, Tell};

/// The versions of the front end's modules that this speaks to.
const ANYWIDGET: &str = "~0.9.* || ~0.10.* || ~0.11.*";

/// A widget with a front end of its own, written as an [ES module](https://anywidget.dev/en/afm/) that exports `render({ model, el })`;
/// `model.get`, `model.set` and `model.save_changes` there are [`get`](Widget::get) and [`set`](Widget::set) here. Showing it needs
/// `pip install anywidget` beside Jupyter. Clones are the same widget. See [`widget!`](crate::widget!) for a shorter way.
///
/// ```
/// use xlazy::prelude::*;
/// let counter = Widget::new("export default { render({ model, el }) { el.textContent = model.get('count'); } }");
/// counter.set("count", 3);
/// assert_eq!(counter.get::<i32>("count"), Some(3));
/// ```
#[derive(Clone)]
pub struct Widget {
    id: Arc<str>,
}

/// What becomes of a value that somebody wants to set, beside what the state is; `None` where it is refused.
type Accepts = fn(&BTreeMap<String, State>, &str, &State) -> Option<State>;

/// What is known of a widget on both sides.
#[derive(Default)]
struct Model {
    state: BTreeMap<String, State>,
    /// Front ends know it.
    open: bool,
    /// They are to know it no more.
    closed: bool,
    /// Keys, and with `None` messages, that somebody waits for.
    awaited: BTreeSet<Option<String>>,
    accepts: Option<Accepts>,
}

impl Model {
    fn accepted(&self, key: &str, value: State) -> Option<State> {
        self.accepts.map_or(Some(value.clone()), |accepts| accepts(&self.state, key, &value))
    }
}

/// Something that a front end did, and nobody was told of yet.
#[derive(Clone, Debug, PartialEq)]
enum Happened {
    Changed(String),
    Said(State),
}

#[derive(Default)]
struct Widgets {
    models: HashMap<Arc<str>, Model>,
    happened: VecDeque<(Arc<str>, Happened)>,
    /// The one whose handlers are called next.
    next: Option<String>,
}

static WIDGETS: Mutex<Option<Widgets>> = Mutex::new(None);

fn widgets<R>(f: impl FnOnce(&mut Widgets) -> R) -> R {
    let mut guard: MutexGuard<'_, Option<Widgets>> = WIDGETS.lock().unwrap_or_else(PoisonError::into_inner);
    f(guard.get_or_insert_default())
}

impl Widget {
    /// A widget with the front end `esm`; nothing is shown yet.
    pub fn new(esm: &str) -> Widget {
        // As unique as a saved notebook and two kernels need it.
        let (a, b) = (RandomState::new(), RandomState::new());
        let id: Arc<str> = format!("{:016x}{:016x}", a.hash_one(0), b.hash_one(1)).into();
        let identity: [(&str, State); 8] = [
            ("_model_module", "anywidget".into()),
            ("_model_name", "AnyModel".into()),
            ("_model_module_version", ANYWIDGET.into()),
            ("_view_module", "anywidget".into()),
            ("_view_name", "AnyView".into()),
            ("_view_module_version", ANYWIDGET.into()),
            ("_view_count", State::Plain(Value::Null)),
            ("_esm", esm.into()),
        ];
        // What the front end keeps an ES module by.
        let module = ("_anywidget_id", State::from(format!("xlazy.{}", &id[..8])));
        let state = identity.into_iter().chain([module]).map(|(k, v)| (k.to_owned(), v)).collect();
        widgets(|all| all.models.insert(id.clone(), Model { state, ..Model::default() }));
        Widget { id }
    }

    /// The same widget with a value of its state set, to build one.
    pub fn with(self, key: &str, value: impl Into<State>) -> Widget {
        self.set(key, value);
        self
    }

    /// The same widget, which takes from code and front ends only what this makes of it.
    fn accepting(self, accepts: Accepts) -> Widget {
        widgets(|all| all.models.get_mut(&self.id).map(|model| model.accepts = Some(accepts)));
        self
    }

    /// Sets the style sheet of its front end.
    pub fn css(self, css: &str) -> Widget {
        self.with("_css", css)
    }

    /// Sets a value of its state, here and in every front end that shows it. The handlers of [`on_change`](Widget::on_change) are not
    /// called: they are for what a hand does.
    pub fn set(&self, key: &str, value: impl Into<State>) {
        let value = value.into();
        let changed = widgets(|all| {
            let model = all.models.get_mut(&self.id)?;
            let value = model.accepted(key, value)?;
            let before = model.state.insert(key.to_owned(), value.clone());
            (model.open && before.as_ref() != Some(&value)).then_some(value)
        });
        if let Some(value) = changed {
            tell("comm_msg", &self.id, &update("update", &BTreeMap::from([(key.to_owned(), value)])));
        }
    }

    /// A value of its state as it is now, also while a cell runs in which a hand changes it; `None` where there is none of that name, or
    /// it is of another type.
    pub fn get<T: FromState>(&self, key: &str) -> Option<T> {
        widgets(|all| T::from_state(all.models.get(&self.id)?.state.get(key)?))
    }

    /// Calls `handler` with the new value whenever a hand has changed that value of the state, between cells. What it prints and shows
    /// stands below the cell that shows the widget.
    pub fn on_change<T: FromState>(&self, key: &str, mut handler: impl FnMut(T) + 'static) {
        self.listen(Some(key), move |state| {
            if let Some(value) = T::from_state(state) {
                handler(value);
            }
        });
    }

    /// Calls `handler` with every message that the front end sends (`model.send(content)`).
    pub fn on_message(&self, mut handler: impl FnMut(State) + 'static) {
        self.listen(None, move |content| handler(content.clone()));
    }

    fn listen(&self, key: Option<&str>, mut handler: impl FnMut(&State) + 'static) {
        let key = key.map(str::to_owned);
        widgets(|all| all.models.get_mut(&self.id).map(|model| model.awaited.insert(key.clone())));
        handlers::add((self.id.clone(), key), move |value| {
            if let Some(state) = value.downcast_ref::<State>() {
                handler(state);
            }
        });
    }

    /// Sends a message to its front ends, where `model.on("msg:custom", …)` gets it.
    pub fn send(&self, content: impl Into<State>) {
        self.open();
        let content = split(&BTreeMap::from([("content".to_owned(), content.into())]));
        let mut data = json!({"method": "custom", "content": content.json["content"]});
        data["buffers"] = json!(content.base64());
        tell("comm_msg", &self.id, &data);
    }

    /// Takes it out of every front end for good, and forgets its handlers. Its state can still be read.
    pub fn close(&self) {
        let open = widgets(|all| {
            let Some(model) = all.models.get_mut(&self.id) else { return false };
            (model.closed, model.awaited) = (true, BTreeSet::new());
            std::mem::take(&mut model.open)
        });
        handlers::forget(&self.id);
        if open {
            tell("comm_close", &self.id, &json!({}));
        }
    }

    /// Makes it known to the front ends, which show it from now on.
    fn open(&self) {
        let opened = widgets(|all| {
            let model = all.models.get_mut(&self.id).filter(|model| !model.closed)?;
            (!std::mem::replace(&mut model.open, true)).then(|| model.state.clone())
        });
        if let Some(state) = opened {
            tell("comm_open", &self.id, &update("", &state));
        }
    }

    /// As it is shown where there are no widgets, or none any more.
    fn shown(&self, plain: &str, html: &str) -> Bundle {
        self.open();
        let view = json!({"version_major": 2, "version_minor": 1, "model_id": &*self.id});
        // The id is another whenever it is run.
        Bundle::html(html, plain).with("application/vnd.jupyter.widget-view+json", view.to_string()).passing()
    }
}

impl Rich for Widget {
    fn rich(&self) -> Bundle {
        let plain = widgets(|all| {
            let own = |key: &&String| !key.starts_with('_');
            let named = |key: &String, value: &State| format!("{key}: {}", split_one(value));
            let state = all.models.get(&self.id).map(|m| &m.state);
            let parts = state.into_iter().flatten().filter(|(k, _)| own(k)).map(|(k, v)| named(k, v));
            format!("Widget({})", parts.collect::<Vec<_>>().join(", "))
        });
        self.shown(&plain, &format!("<code>{}</code>", xlazy_mime::escape_html(&plain)))
    }
}

/// Clones are the same widget, so a cell that moves one loses nothing.
impl Handle for Widget {}

fn split_one(value: &State) -> Value {
    split(&BTreeMap::from([(String::new(), value.clone())])).json[""].take()
}

/// Another widget as a value of the state (`model.widget_manager` finds it by this name).
impl From<&Widget> for State {
    fn from(widget: &Widget) -> State {
        widget.open();
        format!("IPY_MODEL_{}", widget.id).into()
    }
}

/// Makes a widget of a front end and the values that it shares with the code: see [`Widget`](crate::widget::Widget).
///
/// ```
/// use xlazy::prelude::*;
/// let esm = "export default { render({ model, el }) { el.textContent = model.get('count'); } }";
/// let counter = widget!(esm, count = 3, colours = ["red", "blue"]);
/// assert_eq!(counter.get::<i32>("count"), Some(3));
/// ```
#[macro_export]
macro_rules! widget {
    ($esm:expr $(, $key:ident = $value:expr)* $(,)?) => {
        $crate::widget::Widget::new($esm)$(.with(stringify!($key), $value))*
    };
}

/// The content of a message with all or a part of a state.
fn update(method: &str, state: &BTreeMap<String, State>) -> Value {
    let parts = split(state);
    let mut data = json!({"state": parts.json, "buffer_paths": parts.paths, "buffers": parts.base64()});
    if !method.is_empty() {
        data["method"] = method.into();
    }
    data
}

/// Sends a message on the widget's comm; its `buffers`, which stand in the data as base64, travel beside it.
fn tell(kind: &str, id: &str, data: &Value) {
    link::send_in_order(&Tell::Comm(message(kind, id, data.clone()).to_string()));
}

fn message(kind: &str, id: &str, mut data: Value) -> Value {
    let buffers = data.as_object_mut().and_then(|data| data.remove("buffers")).unwrap_or_else(|| json!([]));
    json!({"type": kind, "id": id, "data": data, "buffers": buffers})
}

/// What a front end has sent: `{"id", "data", "buffers"}`, or `{"states": true}`, which asks for all widgets; with `{"id", "next"}` the
/// kernel says whose handlers are called next. The answer has the messages that go back, whether the widget is known, and whether code waits for what has happened.
pub(crate) fn answer(args: &str) -> Result<Bundle> {
    let asked = parse(args).map_err(|e| Error::Usage { message: format!("a widget's message is JSON: {e}") })?;
    let id = asked["id"].as_str().unwrap_or_default();
    let told = match (asked["states"].as_bool(), asked["next"].as_bool()) {
        (Some(true), _) => states(),
        (_, Some(true)) => {
            widgets(|all| all.next = Some(id.to_owned()));
            json!({"known": true})
        }
        _ => received(id, &asked["data"], &asked["buffers"]),
    };
    Ok(crate::json::bundle(told))
}

fn received(id: &str, data: &Value, buffers: &Value) -> Value {
    let none = Vec::new();
    let buffers = buffers.as_array().unwrap_or(&none);
    widgets(|all| {
        let Some((id, model)) = all.models.get_key_value(id).map(|(id, _)| id.clone()).and_then(|id| {
            let model = all.models.get_mut(&id).filter(|model| model.open)?;
            Some((id, model))
        }) else {
            return json!({"known": false});
        };
        let (mut messages, mut happened) = (vec![], vec![]);
        match data["method"].as_str() {
            Some("update") => {
                let empty = Map::new();
                let state = data["state"].as_object().unwrap_or(&empty);
                let state = join(state, data["buffer_paths"].as_array().unwrap_or(&none), buffers);
                let (mut echo, mut corrected) = (BTreeMap::new(), BTreeMap::new());
                for (key, wanted) in state {
                    let Some(value) = model.accepted(&key, wanted.clone()).or_else(|| model.state.get(&key).cloned())
                    else {
                        continue;
                    };
                    let told = if value == wanted { &mut echo } else { &mut corrected };
                    told.insert(key.clone(), value.clone());
                    let changed = model.state.get(&key) != Some(&value);
                    model.state.insert(key.clone(), value);
                    if changed && model.awaited.contains(&Some(key.clone())) {
                        happened.push(Happened::Changed(key));
                    }
                }
                // Every front end that shows it hears of it, and the one that it came from of what it is in truth.
                for (method, state) in [("echo_update", echo), ("update", corrected)] {
                    if !state.is_empty() {
                        messages.push(message("comm_msg", &id, update(method, &state)));
                    }
                }
            }
            Some("request_state") => messages.push(message("comm_msg", &id, update("update", &model.state))),
            Some("custom") if model.awaited.contains(&None) => {
                let content = data["content"].clone();
                happened.push(Happened::Said(content.into()));
            }
            // What is not known is for kernels to come.
            _ => {}
        }
        let call = !happened.is_empty();
        for what in happened {
            // Of a value that changes while a cell runs the last is of interest.
            let same = (id.clone(), what);
            if !(matches!(same.1, Happened::Changed(_)) && all.happened.contains(&same)) {
                all.happened.push_back(same);
            }
        }
        json!({"known": true, "messages": messages, "call": call})
    })
}

/// All widgets that front ends know, as one message: what a page that was loaded again asks for.
fn states() -> Value {
    widgets(|all| {
        let (mut states, mut paths, mut buffers) = (Map::new(), vec![], vec![]);
        for (id, model) in all.models.iter().filter(|(_, model)| model.open) {
            let parts = split(&model.state);
            let name = |key: &str| parts.json[key].clone();
            let (model_name, module) = (name("_model_name"), name("_model_module"));
            let version = name("_model_module_version");
            for path in &parts.paths {
                let rest = path.as_array().into_iter().flatten().cloned();
                let path = [Value::from(&**id), "state".into()].into_iter().chain(rest);
                paths.push(Value::Array(path.collect()));
            }
            buffers.extend(parts.base64());
            let state = json!({
                "model_name": model_name, "model_module": module, "model_module_version": version, "state": parts.json,
            });
            states.insert(id.to_string(), state);
        }
        json!({"method": "update_states", "states": states, "buffer_paths": paths, "buffers": buffers})
    })
}

/// Calls who waits for what hands have done to the widget that is next.
#[doc(hidden)]
pub fn run_handlers() {
    let Some(next) = widgets(|all| all.next.take()) else { return };
    let happened = |all: &mut Widgets| {
        let first = all.happened.iter().position(|(id, _)| **id == *next)?;
        all.happened.remove(first)
    };
    while let Some((id, what)) = widgets(happened) {
        let (key, value) = match what {
            Happened::Changed(key) => {
                let now = widgets(|all| all.models.get(&id)?.state.get(&key).cloned());
                (Some(key), now)
            }
            Happened::Said(content) => (None, Some(content)),
        };
        if let Some(value) = value {
            handlers::call((id, key), &value, |id| widgets(|all| all.models.get(id).is_none_or(|model| model.closed)));
        }
    }
}
