//! What the fuzz targets call (`fuzz/`): files and programs of others.
use crate::nn::safetensors;
use std::io::Write;

/// A safetensors file: never a panic, no more memory than there are bytes, and every tensor has its bytes.
pub fn safetensors(data: &[u8]) {
    let path = std::env::temp_dir().join(format!("xlazy-fuzz-{}.safetensors", std::process::id()));
    std::fs::File::create(&path).and_then(|mut file| file.write_all(data)).expect("a file");
    let Ok(contents) = safetensors::read(&path) else { return };
    let sizes = contents.entries.iter().map(|entry| {
        let bytes = contents.bytes(entry);
        assert_eq!(bytes.len(), entry.ty.bytes(), "{entry:?}");
        bytes.len()
    });
    assert!(sizes.sum::<usize>() <= data.len());
}

/// A program in XLA's protocol buffers: never a panic, whatever it says of itself.
pub fn protobuf(data: &[u8]) {
    for format in ["hlo", "hlo_with_config"] {
        let _ = crate::display::hlo::text(format, data);
        crate::aot::fuzz(format, data);
    }
}

/// A program's text, beside one that is as it should be: never a panic, and no end of time or memory.
pub fn program_text(data: &[u8]) {
    use crate::insight::{Dump, explain_dumps};
    const OLD: &str = include_str!("../tests/dumps/loop.mlir");
    const OLD_HLO: &str = include_str!("../tests/dumps/loop.hlo");
    let text = String::from_utf8_lossy(data);
    for old in [OLD, OLD_HLO] {
        let _ = explain_dumps(&Dump { name: "old", text: old }, &Dump { name: "new", text: &text });
    }
}

#[cfg(test)]
mod tests {
    use crate::corpus;

    #[test]
    fn the_kept_files_of_tensors() {
        corpus::damaged("safetensors", super::safetensors);
    }

    #[test]
    fn the_kept_programs() {
        corpus::damaged("protobuf", super::protobuf);
    }

    #[test]
    fn the_kept_texts() {
        corpus::damaged("program_text", super::program_text);
    }
}
