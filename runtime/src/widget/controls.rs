//! The controls that most cells want: a slider, a button, a box to tick, a choice.
use super::{FromState, State, Widget};
use crate::cell::{Handle, Shown};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use xlazy_mime::{Bundle, Rich, escape_html};

const ESM: &str = include_str!("controls.js");

fn control(kind: &str, label: &str) -> Widget {
    Widget::new(ESM).with("kind", kind).with("label", label)
}

fn label(widget: &Widget) -> String {
    widget.get("label").unwrap_or_default()
}

/// A control as a text and, without a hand, as HTML.
fn shown(widget: &Widget, value: &str, of: &str, html: &str) -> Bundle {
    let label = label(widget);
    let named = if label.is_empty() { value.to_owned() } else { format!("{label}: {value}") };
    let html = format!("<label>{} {html} {}</label>", escape_html(&label), escape_html(value));
    with_made(widget, format!("{named}{of}"), html)
}

fn with_made(widget: &Widget, plain: String, html: String) -> Bundle {
    match widget.get::<Vec<String>>(MADE).as_deref() {
        Some([made, text]) => widget.shown(&format!("{plain}\n{text}"), &format!("<div>{html}</div>{made}")),
        _ => widget.shown(&plain, &html),
    }
}

/// Shows a control, and below it what `make` gives for its value, anew for each value that comes. That is a part of the widget's state,
/// so that a page that is loaded again, or a notebook without a kernel, has it, too.
#[track_caller]
fn interact<T: FromState + 'static, R: Shown<How>, How, C: Rich>(
    control: &C,
    widget: &Widget,
    now: T,
    mut make: impl FnMut(T) -> R + 'static,
) {
    widget.set(MADE, made(&make(now).shown()));
    crate::cell::display(control);
    let below = widget.clone();
    widget.on_change("value", move |value| below.set(MADE, made(&make(value).shown())));
}

/// What [`interact`] shows, as HTML and as a text.
const MADE: &str = "made";

fn made(bundle: &Bundle) -> Vec<String> {
    let html = bundle.get("text/html").or(bundle.get("image/svg+xml")).map(str::to_owned);
    let html = html.unwrap_or_else(|| match bundle.plain() {
        "" => String::new(),
        plain => format!("<pre>{}</pre>", escape_html(plain)),
    });
    vec![html, bundle.plain().to_owned()]
}

/// A type of number that a [`Slider`] has: integers go by ones, others by hundredths of the range.
pub trait Number: Copy + Display + PartialOrd + FromState + Into<State> + 'static {
    #[doc(hidden)]
    fn step(least: Self, most: Self) -> State;
}

macro_rules! numbers {
    ($($t:ty: $step:expr,)*) => {$(
        impl Number for $t {
            fn step(least: Self, most: Self) -> State {
                let step: fn(Self, Self) -> Self = $step;
                step(least, most).into()
            }
        }
    )*};
}
numbers! {
    i32: |_, _| 1,
    i64: |_, _| 1,
    u32: |_, _| 1,
    u64: |_, _| 1,
    usize: |_, _| 1,
    f32: |least, most| (most - least) / 100.0,
    f64: |least, most| (most - least) / 100.0,
}

/// Brings a slider's value to the range; what is no such number is refused.
fn within<T: Number>(state: &BTreeMap<String, State>, key: &str, value: &State) -> Option<State> {
    if key != "value" {
        return Some(value.clone());
    }
    let wanted = T::from_state(value)?;
    let end = |key: &str| state.get(key).and_then(T::from_state);
    let least = end("min").filter(|least| wanted < *least);
    let end = least.or_else(|| end("max").filter(|most| wanted > *most));
    Some(end.map_or_else(|| value.clone(), T::into))
}

/// A number that a hand sets, as a slider (ipywidgets' `IntSlider`, `FloatSlider`). Its value can be read in every cell, also in a loop
/// that runs while it is moved.
///
/// ```
/// use xlazy::prelude::*;
/// let lr = Slider::new("learning rate", 0.0..=0.1).at(0.02);
/// assert_eq!(lr.value(), 0.02);
/// lr.interact(|lr| line_plot("step sizes", "step", "size", &[("size", &[lr, lr / 2.0, lr / 4.0])]));
/// ```
#[derive(Clone)]
pub struct Slider<T> {
    widget: Widget,
    number: PhantomData<T>,
}

impl<T: Number> Slider<T> {
    /// A slider from one end of the range to the other; it begins at the lower one. Raises an error where the first is the higher one.
    #[track_caller]
    pub fn new(label: &str, range: RangeInclusive<T>) -> Slider<T> {
        let (least, most) = range.into_inner();
        if least > most {
            let message = format!("a slider goes from the lower end to the higher one: {most}..={least}");
            crate::Error::Usage { message }.raise();
        }
        let widget = control("slider", label).with("min", least).with("max", most).with("value", least);
        let widget = widget.with("step", T::step(least, most)).accepting(within::<T>);
        Slider { widget, number: PhantomData }
    }

    /// The same slider at a value; one beyond the range is brought to its end.
    pub fn at(self, value: T) -> Slider<T> {
        self.set(value);
        self
    }

    /// The same slider with other steps.
    pub fn step(self, step: T) -> Slider<T> {
        self.widget.set("step", step);
        self
    }

    fn end(&self, key: &str) -> Option<T> {
        self.widget.get(key)
    }

    /// Where it stands now.
    pub fn value(&self) -> T {
        // A front end may have put something there that is no such number.
        self.widget.get("value").or_else(|| self.end("min")).expect("a slider begins with a lower end")
    }

    /// Moves it, in every front end; a value beyond the range is brought to its end.
    pub fn set(&self, value: T) {
        self.widget.set("value", value);
    }

    /// Calls `handler` with the new value when it was moved by hand, between cells.
    pub fn on_change(&self, handler: impl FnMut(T) + 'static) {
        self.widget.on_change("value", handler);
    }

    /// Shows the slider, and below it what `make` gives for its value, anew whenever it is moved (ipywidgets' `interact`).
    #[track_caller]
    pub fn interact<R: Shown<How>, How>(&self, make: impl FnMut(T) -> R + 'static) {
        interact(self, &self.widget, self.value(), make);
    }

    /// Takes it out of the notebook.
    pub fn close(&self) {
        self.widget.close();
    }
}

impl<T: Number> Handle for Slider<T> {
    fn summary(&self) -> String {
        format!("at {}", self.value())
    }
}
impl Handle for Button {}
impl Handle for Checkbox {
    fn summary(&self) -> String {
        self.value().to_string()
    }
}
impl Handle for Dropdown {
    fn summary(&self) -> String {
        self.value()
    }
}

impl<T: Number> Rich for Slider<T> {
    fn rich(&self) -> Bundle {
        let text = |key| self.end(key).map(|n| n.to_string()).unwrap_or_default();
        let (least, most, now) = (text("min"), text("max"), text("value"));
        let html =
            format!("<input type=\"range\" min=\"{least}\" max=\"{most}\" step=\"any\" value=\"{now}\" disabled>");
        shown(&self.widget, &now, &format!(" ({least} to {most})"), &html)
    }
}

/// A button; what it does is said by [`on_click`](Button::on_click).
///
/// ```
/// use xlazy::prelude::*;
/// let again = Button::new("draw again");
/// again.on_click(|| println!("{:?}", Tensor::rand([2]).to_vec::<f32>()));
/// ```
#[derive(Clone)]
pub struct Button {
    widget: Widget,
}

impl Button {
    pub fn new(label: &str) -> Button {
        Button { widget: control("button", label) }
    }

    /// Calls `handler` when it was pressed, between cells; what it prints and shows stands below the cell that shows the button.
    pub fn on_click(&self, mut handler: impl FnMut() + 'static) {
        self.widget.on_message(move |_| handler());
    }

    /// Takes it out of the notebook.
    pub fn close(&self) {
        self.widget.close();
    }
}

impl Rich for Button {
    fn rich(&self) -> Bundle {
        let label = label(&self.widget);
        let html = format!("<button disabled>{}</button>", escape_html(&label));
        self.widget.shown(&format!("[ {label} ]"), &html)
    }
}

/// Something that is so or not, as a box to tick.
///
/// ```
/// use xlazy::prelude::*;
/// let shuffle = Checkbox::new("shuffle", true);
/// assert!(shuffle.value());
/// ```
#[derive(Clone)]
pub struct Checkbox {
    widget: Widget,
}

impl Checkbox {
    pub fn new(label: &str, value: bool) -> Checkbox {
        let accepts = |_: &BTreeMap<_, _>, key: &str, value: &State| {
            (key != "value" || bool::from_state(value).is_some()).then(|| value.clone())
        };
        Checkbox { widget: control("checkbox", label).with("value", value).accepting(accepts) }
    }

    /// Whether it is ticked now.
    pub fn value(&self) -> bool {
        self.widget.get("value").unwrap_or(false)
    }

    /// Ticks it or not, in every front end.
    pub fn set(&self, value: bool) {
        self.widget.set("value", value);
    }

    /// Calls `handler` with the new value when a hand has changed it, between cells.
    pub fn on_change(&self, handler: impl FnMut(bool) + 'static) {
        self.widget.on_change("value", handler);
    }

    /// Shows it, and below it what `make` gives for its value, anew whenever that changes.
    #[track_caller]
    pub fn interact<R: Shown<How>, How>(&self, make: impl FnMut(bool) -> R + 'static) {
        interact(self, &self.widget, self.value(), make);
    }

    /// Takes it out of the notebook.
    pub fn close(&self) {
        self.widget.close();
    }
}

impl Rich for Checkbox {
    fn rich(&self) -> Bundle {
        let (mark, checked) = if self.value() { ("[x]", " checked") } else { ("[ ]", "") };
        let label = label(&self.widget);
        let html = format!("<label><input type=\"checkbox\"{checked} disabled> {}</label>", escape_html(&label));
        with_made(&self.widget, format!("{mark} {label}"), html)
    }
}

/// A choice of one text out of several (ipywidgets' `Dropdown`).
///
/// ```
/// use xlazy::prelude::*;
/// let optimizer = Dropdown::new("optimizer", ["sgd", "adam"]);
/// assert_eq!(optimizer.value(), "sgd");
/// ```
#[derive(Clone)]
pub struct Dropdown {
    widget: Widget,
}

impl Dropdown {
    /// A choice among these; it begins with the first.
    pub fn new<S: Into<String>>(label: &str, options: impl IntoIterator<Item = S>) -> Dropdown {
        let options: Vec<String> = options.into_iter().map(S::into).collect();
        let first = options.first().cloned().unwrap_or_default();
        let accepts = |state: &BTreeMap<_, _>, key: &str, value: &State| {
            let among = || matches!(state.get("options"), Some(State::List(options)) if options.contains(value));
            (key != "value" || among()).then(|| value.clone())
        };
        let widget = control("dropdown", label).with("options", options).with("value", first);
        Dropdown { widget: widget.accepting(accepts) }
    }

    /// What is chosen now.
    pub fn value(&self) -> String {
        self.widget.get("value").unwrap_or_default()
    }

    /// Chooses, in every front end. Raises an error where it is none of the options.
    #[track_caller]
    pub fn set(&self, value: &str) {
        let options: Vec<String> = self.widget.get("options").unwrap_or_default();
        if !options.iter().any(|option| option == value) {
            let message = format!("`{value}` is none of the options: {}", options.join(", "));
            crate::Error::Usage { message }.raise();
        }
        self.widget.set("value", value);
    }

    /// Calls `handler` with the new choice when a hand has made it, between cells.
    pub fn on_change(&self, handler: impl FnMut(String) + 'static) {
        self.widget.on_change("value", handler);
    }

    /// Shows it, and below it what `make` gives for the choice, anew whenever that changes.
    #[track_caller]
    pub fn interact<R: Shown<How>, How>(&self, make: impl FnMut(String) -> R + 'static) {
        interact(self, &self.widget, self.value(), make);
    }

    /// Takes it out of the notebook.
    pub fn close(&self) {
        self.widget.close();
    }
}

impl Rich for Dropdown {
    fn rich(&self) -> Bundle {
        let options: Vec<String> = self.widget.get("options").unwrap_or_default();
        let now = self.value();
        let html = format!("<select disabled><option>{}</option></select>", escape_html(&now));
        shown(&self.widget, &now, &format!(" (of {})", options.join(", ")), &html)
    }
}
