//! Build scripts of dependencies that fail: what the machine lacks for them, and what they said to people, without what they said
//! to cargo.
use std::collections::BTreeSet;

/// Tools that scripts start or libraries that they load: what is said where one is missing, and Debian's package.
const LACKS: &[(&str, &str)] = &[
    ("failed to find tool \"cc\"", "gcc"),
    ("failed to find tool \"c++\"", "g++"),
    ("failed to find tool \"clang", "clang"),
    ("is `cmake` not installed?", "cmake"),
    ("Command 'perl' not found", "perl"),
    ("Command 'make' not found", "make"),
    ("is `make` not installed?", "make"),
    ("Unable to find libclang", "libclang-dev"),
    ("valid shared libraries matching: ['libclang", "libclang-dev"),
    ("Could not find `protoc`", "protobuf-compiler"),
];

/// What a build script or the linker has looked for in vain, and how to get it: a sentence.
pub fn advice(errors: &str) -> Option<String> {
    // rust-lld, and GNU's linker.
    let linker = ["unable to find library -l", "cannot find -l"];
    if let Some((_, rest)) = linker.iter().find_map(|says| errors.split_once(says)) {
        let name = rest.split([':', ' ', '\n']).next()?;
        return Some(format!(
            "a crate of this is linked to the library {name} of the system, which is not found: install the package that has \
             lib{name}.so (`apt-file search lib{name}.so`)"
        ));
    }
    let (_, failed) = errors.split_once("failed to run custom build command for `")?;
    let package = failed.split(['`', ' ']).next()?;
    // All at once, since the next one would be told when the first is there.
    let lacks: BTreeSet<&str> = LACKS.iter().filter(|(says, _)| errors.contains(says)).map(|(_, lack)| *lack).collect();
    if !lacks.is_empty() {
        let lacks: Vec<&str> = lacks.into_iter().collect();
        return Some(format!(
            "`{package}` builds code in another language, and the tools for it are not all here: sudo apt-get install -y {}",
            lacks.join(" ")
        ));
    }
    let library = library(failed)?;
    let tool = if failed.contains("pkg-config command could not be found") { "pkg-config and " } else { "" };
    Some(format!(
        "`{package}` is linked to the library {library} of the system, which is not found: install {tool}the package that has \
         {library}.pc (`apt-file search {library}.pc`), or name a feature of the crate that builds it (`bundled`, `vendored`), \
         where there is one"
    ))
}

/// The library that pkg-config was asked for, or would have been.
fn library(failed: &str) -> Option<&str> {
    let named = failed.split_once("The system library `").and_then(|(_, rest)| rest.split('`').next());
    let asked =
        || failed.split_once("pkg-config --libs --cflags ").and_then(|(_, rest)| rest.split(['`', ' ', '\n']).next());
    named.or_else(asked).filter(|l| !l.is_empty())
}

/// What is left for people of what cargo passes on: neither the lines that a script wrote for cargo nor those about variables of
/// the environment, and nothing twice.
pub fn for_people(errors: &str) -> String {
    let for_cargo = |line: &str| {
        let name = line.split([' ', '=']).next().unwrap_or_default();
        let variable = name.len() > 1 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        let told = line.strip_prefix(name).is_some_and(|rest| rest.starts_with(" = ") || rest == " unset");
        line.starts_with("cargo:") || variable && told
    };
    let mut kept: Vec<&str> = Vec::new();
    let mut of_script = false;
    for line in errors.lines() {
        match line.trim() {
            "--- stdout" => of_script = true,
            "--- stderr" => of_script = false,
            said if of_script && for_cargo(said) => continue,
            said if said.starts_with("note: run with `RUST_BACKTRACE") => continue,
            "" if kept.last().is_none_or(|l| l.trim().is_empty()) => continue,
            said if said.starts_with("warning:") && kept.contains(&line) => continue,
            _ => {}
        }
        if line.trim() == "--- stderr" {
            while kept.last().is_some_and(|l| l.trim().is_empty() || l.trim() == "--- stdout") {
                kept.pop();
            }
        }
        kept.push(line);
    }
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: &str = "error: failed to run custom build command for `a-sys v1.1.32`\n\nCaused by:\n  \
        process didn't exit successfully: `build-script-build` (exit status: 101)\n";

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let of = |said: &str| advice(&format!("{FAILED}  --- stderr\n  {said}\n")).unwrap();
        let all = of(
            "ToolNotFound: failed to find tool \"c++\": No such\nfailed to find tool \"cc\"\nis `cmake` not installed?",
        );
        assert!(all.starts_with("`a-sys` builds") && all.ends_with("install -y cmake g++ gcc"), "{all}");
        // What a crate tries and can do without is no lack.
        let cc = of("The pkg-config command could not be found.\nerror occurred in cc-rs: failed to find tool \"cc\"");
        assert!(cc.ends_with("install -y gcc"), "{cc}");
        let run = of("Could not run `PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 pkg-config --libs --cflags alsa`\n\
                      The pkg-config command could not be found.");
        assert!(
            run.contains("the library alsa of") && run.contains("pkg-config and the package that has alsa.pc"),
            "{run}"
        );
        let absent = of("The system library `libudev` required by crate `libudev-sys` was not found.");
        assert!(absent.contains("install the package that has libudev.pc"), "{absent}");
        let linked =
            advice("error: linking with `rust-lld` failed\n  = note: rust-lld: error: unable to find library -lblas\n")
                .unwrap();
        assert!(linked.contains("the library blas of") && linked.contains("libblas.so"), "{linked}");
        assert_eq!(advice("error: could not compile `cc` (lib)"), None);
        assert_eq!(advice(&format!("{FAILED}  --- stderr\n  something else\n")), None);
    }

    #[test]
    fn what_scripts_tell_cargo_is_not_for_people() {
        let said = format!(
            "warning: a-sys@1: no compiler\nwarning: a-sys@1: no compiler\n{FAILED}  --- stdout\n  cargo:rerun-if-env-changed=CC\n  \
             CC_x86_64-unknown-linux-gnu = None\n  OPENSSL_DIR unset\n\n  --- stderr\n\n\n  no such = thing\n  note: run with `RUST_BACKTRACE=1` environment variable"
        );
        let left = for_people(&said);
        assert_eq!(left, format!("warning: a-sys@1: no compiler\n{FAILED}  --- stderr\n\n  no such = thing"));
        let words = format!("{FAILED}  --- stdout\n  cargo:x=y\n  a word of its own\n  --- stderr\n  b");
        assert_eq!(for_people(&words), format!("{FAILED}  --- stdout\n  a word of its own\n  --- stderr\n  b"));
    }
}
