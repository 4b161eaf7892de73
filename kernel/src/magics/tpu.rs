//! `%tpu`: a program compiled for TPUs that need not be there.
use super::answer;
use super::magic::{Call, Magic, Reads, Scope, Takes};
use crate::engine::{Event, Reply};
use xlazy_mime::Question;

pub const TPU: Magic = Magic {
    name: "tpu",
    aliases: &[],
    usage: "%tpu [--quick] [--json] [--largest-batch | --roofline] TPU EXPRESSION [with AXIS=N,…]\n%tpu [--quick] [--json] [--largest-batch | --roofline] TPU last [with AXIS=N,…]\n%tpu compare TPU… EXPRESSION",
    summary: "compiles for a TPU that need not be there: does it fit, what would it take",
    help: r#"Compiles what the expression needs with XLA's TPU compiler, and shows what the compiler says: peak memory against
the chip's, and its estimate of the time, fusion by fusion, with the lines of your cells. Nothing runs, and no TPU is
needed; libtpu is (`xlazy plugins install tpu`). The expression is a tensor, a tuple of tensors or a list of them;
`last` is the program that ran last, such as a whole training step. compare shows several chips in one table.

TPU is a chip and how many there are along each axis, v5e:2x2 or v5p:2x2x1, or the name of a slice, v5e-256 or v3-2048;
v5e alone is one chip. The chips are v2, v3, v4, v5e, v5p, v6e and tpu7x. Sizes that no pod has are refused, with the
nearest. A program whose tensors lie on a mesh is compiled for as many devices; `with data=16,model=16` behind it gives
axes of its mesh other sizes, so that a laptop's eight CPU devices stand for a pod. Its collectives are listed, with an
estimate over published link rates. --slices N is for several slices, with the data centre's network between them.

-O0 to -O3 is the optimisation level: 2 by default, at which real runs compile. --quick is -O1, a tenth of the time for
big programs, but what is fast and what is slow may stand in another order there. Options may stand at the end, too.

--largest-batch looks for the largest batch that fits, with a compilation for each try: it changes the leading dimension
of the inputs in the recorded program, and refuses an op with a size of its own, with its line. A closure is recorded
anew for each batch. --roofline draws how far the program and its dearest kernels are from the chip's published peak
rates. A report says what the program costs by list prices, where there is one; yours are in ~/.config/xlazy/prices.json
(or XLAZY_PRICES): {"chips": {"v5e": 0.6}}.

--partitions N splits the program by its shardings, --timeout
SECONDS bounds the compile.

```
%tpu v5e:2x2 x.matmul(&w).relu()
%tpu v5e last
%tpu v3-2048 last with data=2048
%tpu compare v4 v5e v5p v6e tpu7x x.matmul(&w)
%tpu --quick --json v6e:1x1 loss
%tpu v5e last --largest-batch
%tpu v5e --largest-batch |batch| loss_of(batch)
%tpu v5e last --roofline
```"#,
    scope: Scope::Line,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Never,
    run,
};

fn run(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    let (mut spec, what) = match split(call.args) {
        Ok(parts) => parts,
        Err(why) => return call.magic.misused(&why),
    };
    if call.json {
        spec.push_str(" --json");
    }
    let what = what.trim_end_matches(';').trim();
    let is_tensor = |v: &xlazy_mime::Var| v.name == what && v.handle && v.type_name.ends_with("Tensor");
    let known = match what {
        "" => return call.magic.misused("which program? Write an expression, or last."),
        "last" => "last".to_owned(),
        _ if call.host.vars().iter().any(is_tensor) => format!("var {what}"),
        _ => "check".to_owned(),
    };
    // What the disk has needs no cell, which costs rustc's time. A compile does: only cells can be interrupted.
    match call.host.call(Question::Aot, &format!("{known} {spec}")) {
        Ok(bundle) if bundle.entries.is_empty() => {}
        // As a cell shows it.
        Ok(bundle) => {
            events(Event::Result(bundle));
            return Reply::Ok;
        }
        refused => return answer::show(refused, events),
    }
    if what == "last" {
        return call.host.run_code(&format!("xlazy::aot::magic_last({spec:?})"), events);
    }
    let closure = what.starts_with('|') || what.starts_with("move |");
    if closure && spec.split_whitespace().any(|w| w == "--largest-batch") {
        return call.host.run_code(&format!("xlazy::aot::magic_largest({spec:?}, ({what}\n))"), events);
    }
    // The line break keeps a trailing `//` comment from swallowing the closing parenthesis.
    call.host.run_code(&format!("xlazy::aot::magic({spec:?}, &({what}\n))"), events)
}

/// Chips, as topologies begin.
const CHIPS: &[&str] = &["v2", "v3", "v4", "v5e", "v5p", "v6e", "tpu7x"];

/// Whether a word stands before the program: a chip, be it with a topology, or `compare`.
pub fn is_one(word: &str) -> bool {
    word == "compare" || CHIPS.contains(&chip_of(word))
}

/// The chip of `v5e`, `v5e:2x2`, `v5e-256` or `v5litepod-256`.
fn chip_of(word: &str) -> &str {
    match word.split([':', '-']).next().unwrap_or_default() {
        "v5litepod" => "v5e",
        chip => chip,
    }
}

/// The words that may stand there: the chips, with the topologies that the help names.
pub fn words() -> impl Iterator<Item = &'static str> {
    let named =
        TPU.help.split(|c: char| !c.is_ascii_alphanumeric() && c != ':').filter(|w| w.contains(':') && is_one(w));
    let mut all: Vec<&str> = CHIPS.iter().copied().chain(named).chain(["compare"]).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter()
}

/// Takes the options and TPUs off the front; what is left is the program.
fn split(args: &str) -> Result<(String, &str), String> {
    // Options may stand at the end, too.
    let mut spec: Vec<&str> = Vec::new();
    let mut args = args.trim().trim_end_matches(';').trim_end();
    while let Some((before, word)) = args.rsplit_once(char::is_whitespace).filter(|(_, w)| AT_END.contains(w)) {
        spec.push(word);
        args = before.trim_end();
    }
    let (mut rest, mesh) = with_mesh(args);
    let mut chips = 0;
    loop {
        let (word, tail) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let lower = word.to_lowercase();
        let chip = chip_of(&lower);
        let rest_of = word.find([':', '-']).map_or("", |at| &word[at..]);
        match word {
            "compare" if chips == 0 => {}
            "--partitions" | "--slices" | "--timeout" => {
                let (number, after) = tail.trim().split_once(char::is_whitespace).unwrap_or((tail.trim(), ""));
                spec.extend([word, number]);
                rest = after.trim_start();
                continue;
            }
            // A minus that is no option begins an expression.
            _ if word.starts_with("-O") || word.starts_with("--") => {}
            _ if CHIPS.contains(&chip) && !rest_of.starts_with("::") => {
                if chips > 0 && !spec.contains(&"compare") {
                    break;
                }
                chips += 1;
            }
            _ if chips == 0 && !word.is_empty() => {
                return Err(format!("{word:?} is no TPU: the chips are {}; v5e:2x2 is four of one.", CHIPS.join(", ")));
            }
            _ => break,
        }
        spec.push(word);
        rest = tail.trim_start();
    }
    if chips == 0 {
        return Err(format!("which TPU? The chips are {}; v5e:2x2 is four of one.", CHIPS.join(", ")));
    }
    if let Some(mesh) = mesh {
        return Ok((format!("{} --mesh {mesh}", spec.join(" ")), rest));
    }
    Ok((spec.join(" "), rest))
}

/// Options without a value, which no expression ends with.
const AT_END: [&str; 4] = ["--quick", "--largest-batch", "--roofline", "--json"];

/// Takes ` with data=16,model=16` off the end, which no expression of Rust's has there.
fn with_mesh(args: &str) -> (&str, Option<String>) {
    let Some((before, with)) = args.rsplit_once(" with ") else { return (args, None) };
    let name = |n: &str| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let axis =
        |part: &str| part.split_once('=').is_some_and(|(n, size)| name(n.trim()) && size.trim().parse::<u64>().is_ok());
    let with = with.trim().trim_end_matches(';');
    match with.split(',').all(axis) {
        true => (before.trim_end(), Some(with.split_whitespace().collect())),
        false => (args, None),
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_line_falls_into_tpus_and_program() {
        let ok = |line| split(line).unwrap();
        assert_eq!(ok("v5e:2x2 x.matmul(&w)"), ("v5e:2x2".into(), "x.matmul(&w)"));
        assert_eq!(ok("-O2 v5e last"), ("-O2 v5e".into(), "last"));
        assert_eq!(ok("v3-2048 last with data=16, model=2"), ("v3-2048 --mesh data=16,model=2".into(), "last"));
        assert_eq!(ok("--slices 2 v5e-256 x"), ("--slices 2 v5e-256".into(), "x"));
        assert_eq!(ok("v5e v4-1"), ("v5e".into(), "v4-1"));
        assert_eq!(ok("v5e f(\" with data\")"), ("v5e".into(), "f(\" with data\")"));
        assert_eq!(ok("v5e -O2 --partitions 4 &y + 1"), ("v5e -O2 --partitions 4".into(), "&y + 1"));
        assert_eq!(ok("compare v4 v5e tpu7x -x"), ("compare v4 v5e tpu7x".into(), "-x"));
        assert_eq!(ok("v5e last --largest-batch"), ("--largest-batch v5e".into(), "last"));
        assert_eq!(ok("v5e last with data=2 --quick;"), ("--quick v5e --mesh data=2".into(), "last"));
        // A variable may have a chip's name.
        assert_eq!(ok("v5e v4"), ("v5e".into(), "v4"));
        assert_eq!(ok("v5e { let a = 1; f(a) }"), ("v5e".into(), "{ let a = 1; f(a) }"));
        assert!(split("x.matmul(&w)").unwrap_err().contains("no TPU"));
        assert!(split("").unwrap_err().contains("which TPU"));
        assert!(split("compare").unwrap_err().contains("which TPU"));
        assert_eq!(ok("v5e"), ("v5e".into(), ""));
    }
}
