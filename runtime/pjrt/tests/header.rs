//! The declarations of `c.rs` against the C header of the CPU plugin's wheel: every struct, field and enumerator.
//!
//! The header's folder comes from `XLAZY_PJRT_INCLUDE`, or from `include_dir` in the plugin's `plugin.json`.
mod common;

use common::*;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use xlazy_pjrt::declared::{MINOR, OLDEST_MINOR, enumerators, layouts};

#[test]
fn every_declaration_is_the_headers() {
    let include = include_dir();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (folder.join("header_check.c"), folder.join("header_check"));
    std::fs::write(&source, program()).unwrap();
    let mut cc = Command::new("cc");
    let output = cc.arg("-std=c11").arg("-I").arg(&include).arg(&source).arg("-o").arg(&binary).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "a struct, field or enumerator is not in the header:\n{words}");
    let output = Command::new(&binary).output().unwrap();
    let header: BTreeMap<&str, &str> =
        std::str::from_utf8(&output.stdout).unwrap().lines().map(|line| line.split_once(' ').unwrap()).collect();

    let mut wrong = String::new();
    let mut check = |what: String, ours: String| match header.get(what.as_str()) {
        Some(theirs) if *theirs == ours => (),
        theirs => writeln!(wrong, "{what}: ours {ours}, the header's {theirs:?}").unwrap(),
    };
    for layout in layouts() {
        let name = layout.name;
        // The table is declared up to the last entry that is called.
        if name != "PJRT_Api" {
            check(name.to_owned(), format!("{} {}", layout.size, layout.struct_size));
        }
        for (field, offset, size) in layout.fields {
            check(format!("{name}.{field}"), format!("{offset} {size}"));
        }
    }
    for (name, number) in enumerators() {
        check(name, number.to_string());
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(header.len() > 400, "only {} lines were compared", header.len());
    let minor: i32 = header["PJRT_API_MINOR"].parse().unwrap();
    assert!((OLDEST_MINOR..=MINOR.max(minor)).contains(&minor));
    // A header newer than the declarations may have grown structs: above they were found unchanged or not at all.
}

/// A C program that prints what the header says about everything that `c.rs` declares.
fn program() -> String {
    let mut c = String::from(
        "#include <stdio.h>\n#include \"xla/pjrt/c/pjrt_c_api.h\"\n\
         #define S(T) printf(#T \" %zu %zu\\n\", sizeof(T), (size_t)T##_STRUCT_SIZE)\n\
         #define F(T, f) printf(#T \".\" #f \" %zu %zu\\n\", offsetof(T, f), sizeof(((T*)0)->f))\n\
         #define E(e) printf(#e \" %d\\n\", (int)e)\n\
         int main(void) {\n",
    );
    for layout in layouts() {
        let name = layout.name;
        writeln!(c, "S({name});").unwrap();
        for (field, ..) in layout.fields {
            writeln!(c, "F({name}, {field});").unwrap();
        }
    }
    for (name, _) in enumerators() {
        // `#e` would print what a macro stands for.
        writeln!(c, "printf(\"{name} %d\\n\", (int){name});").unwrap();
    }
    c + "printf(\"PJRT_API_MINOR %d\\n\", PJRT_API_MINOR);\nreturn 0; }\n"
}
