//! `xlazy bench typing`: how long who types waits for completion.
use super::engines;
use super::options::{json_flag, rounds};
use super::report::say;
use crate::engine::{Engine, Failure, Reply, Request};
use clap::{ArgMatches, Command};
use serde_json::{Value, json};
use std::time::Instant;

const SETUP: &str = "use std::collections::HashMap; #[derive(Clone)] struct Point { x: f64, y: f64 } \
    impl Point { fn norm(&self) -> f64 { self.x } } let p = Point { x: 1.0, y: 2.0 }; let v = vec![1, 2, 3]; \
    let t = Tensor::ones([2]); let words: HashMap<String, Vec<f32>> = HashMap::new();";

/// `{i}` is another number in every round, so that nobody has been asked for that place before; the word behind the dot is
/// typed letter by letter.
const PLACES: &[(&str, &str)] = &[
    ("let n{i} = v.", "len"),
    ("let n{i} = v.iter().map(|x| x + {i}).fil", "ter"),
    ("let n{i} = p.", "norm"),
    ("let n{i} = t.relu().sum().", "item"),
    ("let n{i} = words.values().flatten().copied().", "fold"),
    ("let n{i} = Point { x: 1.0, ", "y"),
    ("let n{i} = std::collections::", "Hash"),
    ("let n{i} = lea", "rn"),
];

pub fn command() -> Command {
    Command::new("typing")
        .about("How long completion takes: the first time at a place, and while the word is typed on")
        .arg(json_flag())
        .arg(rounds("9", 99, "Times every place is asked for"))
}

/// Measures and prints.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let (as_json, rounds) = (matches.get_flag("json"), *matches.get_one("rounds").expect("it has a default"));
    let engine = engines::start()?;
    let request = Request { code: SETUP.to_owned(), cell: 1, ..Request::default() };
    if let Reply::Error(failure) = engine.execute(&request, &mut |_| {}) {
        return Err(failure);
    }
    let begin = Instant::now();
    engine.complete("v.", 2);
    let very_first = begin.elapsed().as_secs_f64() * 1e3;
    let places: Vec<Value> = PLACES.iter().map(|(code, word)| place(engine.as_ref(), code, word, rounds)).collect();
    engine.shutdown();
    if as_json {
        say(&json!({ "very_first_ms": rounded(very_first), "places": places }).to_string());
        return Ok(());
    }
    say(&format!("the first completion of a session: {} ms", rounded(very_first)));
    for place in places {
        let (at, first, on) = (&place["at"], &place["first"], &place["typing_on"]);
        say(&format!(
            "  {:<48} first: median {:>6} ms, p90 {:>6} ms   typing on: median {:>5} ms, p90 {:>5} ms",
            at.as_str().unwrap_or_default(),
            first["median_ms"],
            first["p90_ms"],
            on["median_ms"],
            on["p90_ms"]
        ));
    }
    Ok(())
}

fn place(engine: &dyn Engine, code: &str, word: &str, rounds: u64) -> Value {
    let (mut first, mut on) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let mut text = code.replace("{i}", &(100 + round).to_string());
        // People take longer than this from one place to the next.
        std::thread::park_timeout(std::time::Duration::from_millis(150));
        let ask = |text: &str, times: &mut Vec<f64>| {
            let begin = Instant::now();
            engine.complete(text, text.len());
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        };
        ask(&text, &mut first);
        for letter in word.chars() {
            text.push(letter);
            ask(&text, &mut on);
        }
    }
    json!({ "at": code, "first": summary(&mut first), "typing_on": summary(&mut on) })
}

fn summary(times: &mut [f64]) -> Value {
    times.sort_by(f64::total_cmp);
    let at = |part: f64| rounded(times[((times.len() - 1) as f64 * part).round() as usize]);
    json!({ "median_ms": at(0.5), "p90_ms": at(0.9) })
}

fn rounded(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}
