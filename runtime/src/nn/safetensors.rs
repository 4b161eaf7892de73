//! States in safetensors files: a JSON header with names, dtypes, shapes and places, then the bytes. The format's own library reads
//! and writes them beside us in the tests; here it would bring serde_json along, which cells must not see (`json/mod.rs`).
use crate::insight::Cause;
use crate::json::{self, Value, json};
use crate::tensor::Tensor;
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Write as _;
use std::ops::Range;
use std::panic::Location;
use std::path::{Path, PathBuf};
use xlazy_core::ty::{DType, Shape, Type};
use xlazy_mime::regular;
use xlazy_mime::whole::{self, Unfinished};

/// Writes named tensors, such as a `state_dict()`, to a safetensors file.
///
/// ```
/// use xlazy::prelude::*;
/// let path = std::env::temp_dir().join(format!("xlazy-{}.safetensors", std::process::id()));
/// let (a, b) = (nn::Linear::new(3, 2), nn::Linear::new(3, 2));
/// nn::save(&path, &a.state_dict()).unwrap();
/// b.load_state_dict(&nn::load(&path).unwrap()).unwrap();
/// assert_eq!(a.weight.to_vec::<f32>(), b.weight.to_vec::<f32>());
/// # std::fs::remove_file(&path).unwrap();
/// ```
#[track_caller]
pub fn save(path: impl AsRef<Path>, state: &[(String, Tensor)]) -> Result<()> {
    let at = Location::caller();
    // One program for all of them.
    Tensor::compute(&state.iter().map(|(_, t)| t.clone()).collect::<Vec<_>>(), Cause::Read, at)?;
    let part =
        |(name, t): &(String, Tensor)| Ok(Part { name: name.clone(), ty: t.ty(), bytes: t.bytes(Cause::Read, at)? });
    let parts = state.iter().map(part).collect::<Result<Vec<Part>>>()?;
    write(path.as_ref(), None, &[], &parts)
}

/// One tensor of a file.
pub(crate) struct Part {
    pub name: String,
    pub ty: Type,
    pub bytes: Vec<u8>,
}

/// Writes a file: all of it or nothing, also when the power goes. Nobody ever sees half of it. What was there is kept under
/// another name where one is given.
pub(crate) fn write(path: &Path, keep: Option<&Path>, metadata: &[(&str, &str)], parts: &[Part]) -> Result<()> {
    if let Some(part) = parts.iter().find(|p| p.ty.dtype.safetensors().is_none()) {
        let (path, dtype, name) = (path.display(), part.ty.dtype, &part.name);
        let instead = if dtype.is_complex() { ": save its `.real()` and `.imag()`" } else { "" };
        let message = format!("cannot write {path}: safetensors files hold no {dtype}, which `{name}` is{instead}");
        return Err(Error::Usage { message });
    }
    let mut header = header(metadata, parts);
    while !header.len().is_multiple_of(8) {
        header.push(b' ');
    }
    let failed = |e: std::io::Error| Error::Usage { message: format!("cannot write {}: {e}", path.display()) };
    if header.len() > LONGEST_HEADER {
        let message = format!("cannot write {}: its header would be longer than any reader takes", path.display());
        return Err(Error::Usage { message });
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    whole::sweep(folder, EXTENSION);
    let written = Unfinished::create(path).and_then(|mut unfinished| {
        unfinished.file.write_all(&(header.len() as u64).to_le_bytes())?;
        unfinished.file.write_all(&header)?;
        parts.iter().try_for_each(|p| unfinished.file.write_all(&p.bytes))?;
        unfinished.finish(keep)
    });
    written.map_err(failed)
}

/// The header for these tensors, in their order.
fn header(metadata: &[(&str, &str)], parts: &[Part]) -> Vec<u8> {
    let mut fields = Vec::new();
    if !metadata.is_empty() {
        let all: Value = metadata.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect();
        fields.push(format!("{}:{all}", json!(METADATA)));
    }
    let mut end = 0;
    for part in parts {
        let start = end;
        end += part.bytes.len();
        let (name, dtype, shape) = (json!(part.name), json!(part.ty.dtype.safetensors()), json!(part.ty.shape[..]));
        fields.push(format!("{name}:{{\"dtype\":{dtype},\"shape\":{shape},\"data_offsets\":[{start},{end}]}}"));
    }
    format!("{{{}}}", fields.join(",")).into_bytes()
}

const METADATA: &str = "__metadata__";

const EXTENSION: &str = "safetensors";

/// What the format allows.
const LONGEST_HEADER: usize = 100_000_000;

/// The tensors of a safetensors file, by name, in the order of the file's header. Weights that are published in several files are
/// loaded by their `model.safetensors.index.json`, and those of a folder by the folder.
#[track_caller]
pub fn load(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let path = weights(path.as_ref())?;
    let mut out = Vec::new();
    let Some((files, names)) = sharded(&path)? else {
        add(&path, &mut out)?;
        return Ok(out);
    };
    files.iter().try_for_each(|file| add(&path.with_file_name(file), &mut out))?;
    let mut found = BTreeSet::new();
    if let Some((twice, _)) = out.iter().find(|(name, _)| !found.insert(name.as_str())) {
        return Err(failed(&path, format!("two of its files have a tensor called `{twice}`")));
    }
    match names.iter().find(|(name, _)| !found.contains(name.as_str())) {
        Some((name, file)) => Err(failed(&path, format!("`{name}` is not in {file}, where it should be"))),
        None => Ok(out),
    }
}

fn failed(path: &Path, what: String) -> Error {
    // An interrupt is no error of the file.
    xlazy_core::sys::check_interrupt();
    Error::Usage { message: format!("cannot read {}: {what}", path.display()) }
}

/// Adds what a file holds.
#[track_caller]
fn add(path: &Path, out: &mut Vec<(String, Tensor)>) -> Result<()> {
    let contents = read(path).map_err(|what| failed(path, what))?;
    out.extend(contents.entries.iter().map(|e| (e.name.clone(), Tensor::of_bytes(contents.bytes(e), e.ty.clone()))));
    Ok(())
}

/// The file in a folder that says where its weights are.
fn weights(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let names = [format!("model.{EXTENSION}"), format!("model.{EXTENSION}{INDEX}")];
    if let Some(file) = names.iter().map(|name| path.join(name)).find(|file| file.exists()) {
        return Ok(file);
    }
    let pickled = path.join("pytorch_model.bin").exists();
    let pickle =
        ", and its pytorch_model.bin is Python's: `safetensors.torch.save_file` writes the same as safetensors";
    Err(failed(path, format!("it has no {}{}", names.join(" and no "), if pickled { pickle } else { "" })))
}

/// Behind the name of the weights.
const INDEX: &str = ".index.json";

/// The files that an index names, and which tensor is in which; nothing where it is none.
type Shards = (BTreeSet<String>, Metadata);

fn sharded(path: &Path) -> Result<Option<Shards>> {
    if !path.to_string_lossy().ends_with(INDEX) {
        return Ok(None);
    }
    let text = regular::read(path).map_err(|e| failed(path, e.to_string()))?;
    let index = json::parse(text).map_err(|e| failed(path, e.to_string()))?;
    let names =
        texts(&index["weight_map"]).ok_or_else(|| failed(path, "it has no `weight_map` of names".to_owned()))?;
    let files: BTreeSet<String> = names.iter().map(|(_, file)| file.clone()).collect();
    // beside the index, wherever it came from
    match files.iter().find(|file| Path::new(file).file_name() != Some(file.as_ref())) {
        Some(file) => Err(failed(path, format!("`{file}` is not the name of a file beside it"))),
        None => Ok(Some((files, names))),
    }
}

/// What a file holds.
pub(crate) struct Contents {
    pub metadata: Metadata,
    pub entries: Vec<Entry>,
    body: Vec<u8>,
}

impl Contents {
    pub fn bytes(&self, entry: &Entry) -> &[u8] {
        &self.body[entry.place.clone()]
    }
}

/// Reads a file. Its header is looked at before the rest, which may be large, is read.
pub(crate) fn read(path: &Path) -> Parsed<Contents> {
    let failed = |e: std::io::Error| e.to_string();
    let mut file = regular::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut next = |length: usize| regular::read_next(&mut file, length, &xlazy_core::sys::interrupted).map_err(failed);
    let Described { metadata, entries, begin } = describe(size, |_, length| next(length))?;
    let rest = usize::try_from(size - begin).map_err(|_| "it is larger than memory can be".to_owned())?;
    let contents = Contents { metadata, entries, body: next(rest)? };
    contents.entries.iter().try_for_each(|e| check_values(e, contents.bytes(e)))?;
    Ok(contents)
}

/// What a file says of itself before its tensors' bytes.
pub(crate) struct Described {
    pub metadata: Metadata,
    pub entries: Vec<Entry>,
    /// Where those bytes begin.
    pub begin: u64,
}

/// The header of a file of this size, of which `read` gives so many bytes from there on.
pub(crate) fn describe(size: u64, mut read: impl FnMut(u64, usize) -> Parsed<Vec<u8>>) -> Parsed<Described> {
    let short = || "the file is too short for its header".to_owned();
    let length = read(0, 8).ok().and_then(|b| <[u8; 8]>::try_from(b).ok()).ok_or_else(short)?;
    let length = u64::from_le_bytes(length);
    let rest = size.checked_sub(8).and_then(|rest| rest.checked_sub(length)).ok_or_else(short)?;
    if length > LONGEST_HEADER as u64 {
        return Err(format!("its header would have {length} bytes, which is more than any has"));
    }
    let header = read(8, length as usize)?;
    let rest = usize::try_from(rest).map_err(|_| "it is larger than memory can be".to_owned())?;
    let (metadata, entries) = entries(&header, rest)?;
    Ok(Described { metadata, entries, begin: 8 + length })
}

/// A byte that is neither would be true to one program and false to the next.
fn check_values(entry: &Entry, bytes: &[u8]) -> Parsed<()> {
    match bytes.iter().position(|b| entry.ty.dtype == DType::Bool && *b > 1) {
        Some(i) => Err(format!("`{}` is of dtype BOOL, and its byte {i} is {}, not 0 or 1", entry.name, bytes[i])),
        None => Ok(()),
    }
}

#[derive(Debug, PartialEq)]
pub(crate) struct Entry {
    pub name: String,
    pub ty: Type,
    /// Where its bytes are behind the header.
    pub place: Range<usize>,
}

/// Keys and values that a file carries besides its tensors.
pub(crate) type Metadata = Vec<(String, String)>;

type Parsed<T> = std::result::Result<T, String>;

/// As many dimensions as numpy knows.
const MOST_DIMENSIONS: usize = 64;

/// What a header says of a body of that many bytes; an error says what is wrong with it. Every byte belongs to one tensor:
/// a file that named the same bytes again and again would be far larger in memory than it is.
fn entries(header: &[u8], body: usize) -> Parsed<(Metadata, Vec<Entry>)> {
    let foreign = |why: &dyn Display| format!("its header is not that of a safetensors file: {why}");
    let fields = json::entries(header).map_err(|e| foreign(&e))?;
    let (metadata, infos): (Vec<_>, Vec<_>) = fields.iter().partition(|(name, _)| name == METADATA);
    let metadata = match &metadata[..] {
        [] => Vec::new(),
        [(_, one)] => texts(one).ok_or_else(|| foreign(&"its metadata are no texts"))?,
        _ => return Err(foreign(&"it has metadata twice")),
    };
    let info = |(name, json): &&(String, Value)| {
        let info = Info::read(json).map_err(|why| foreign(&format_args!("`{name}`: {why}")))?;
        entry(name, &info, body)
    };
    let out = infos.iter().map(info).collect::<Parsed<Vec<Entry>>>()?;
    let mut names: Vec<&str> = out.iter().map(|e| e.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("it has two tensors called `{}`", pair[0]));
    }
    let mut places: Vec<&Entry> = out.iter().collect();
    places.sort_by_key(|e| (e.place.start, e.place.end));
    let mut end = 0;
    for e in places {
        if e.place.start != end {
            return Err(format!("`{}` does not begin where the tensor before it ends", e.name));
        }
        end = e.place.end;
    }
    match body - end {
        0 => Ok((metadata, out)),
        rest => Err(format!("it has {rest} bytes behind its last tensor")),
    }
}

/// An object of texts.
fn texts(json: &Value) -> Option<Metadata> {
    json.as_object()?.iter().map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// What a header says of one tensor.
struct Info<'h> {
    dtype: &'h str,
    shape: Vec<usize>,
    place: (usize, usize),
}

impl Info<'_> {
    fn read(json: &Value) -> Parsed<Info<'_>> {
        let fields = json.as_object().ok_or("an object is expected")?;
        let field = |name: &str| fields.get(name).ok_or_else(|| format!("missing field `{name}`"));
        let numbers = |name: &str| {
            let numbers = field(name)?.as_array().and_then(|all| all.iter().map(size).collect::<Option<Vec<usize>>>());
            numbers.ok_or_else(|| format!("`{name}` is no list of sizes"))
        };
        let dtype = field("dtype")?.as_str().ok_or("`dtype` is no text")?;
        let shape = numbers("shape")?;
        match numbers("data_offsets")?[..] {
            [start, end] => Ok(Info { dtype, shape, place: (start, end) }),
            _ => Err("`data_offsets` are not two".to_owned()),
        }
    }
}

fn size(json: &Value) -> Option<usize> {
    json.as_u64().and_then(|n| n.try_into().ok())
}

/// What a header says of one tensor of a body of that many bytes.
fn entry(name: &str, info: &Info, body: usize) -> Parsed<Entry> {
    let (word, (start, end)) = (info.dtype, info.place);
    let known = DType::ALL.into_iter().find(|d| d.safetensors() == Some(word));
    let dtype = known.ok_or_else(|| format!("`{name}` is of dtype {word}, which xlazy lacks"))?;
    if start > end || end > body {
        return Err(format!("`{name}` lies outside the file"));
    }
    let size = |least: usize| info.shape.iter().try_fold(dtype.size(), |n, d| n.checked_mul((*d).max(least)));
    // Without its zeros, too, a size must be one that an address can have.
    if info.shape.len() > MOST_DIMENSIONS || size(1).is_none_or(|n| i64::try_from(n).is_err()) {
        return Err(format!("`{name}` has {} dimensions of more elements than there can be", info.shape.len()));
    }
    let ty = Type::new(dtype, Shape::new(&info.shape));
    if size(0) != Some(end - start) {
        return Err(format!("`{name}` has {} bytes, which is not {ty}", end - start));
    }
    Ok(Entry { name: name.to_owned(), ty, place: start..end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::drawn::{drawn, spoilt};
    use std::collections::BTreeMap;

    fn file(header: &str, body: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), body].concat()
    }

    fn read(header: &str, body: &[u8]) -> Parsed<Contents> {
        let path = std::env::temp_dir().join(format!(
            "xlazy-read-{}-{:?}.safetensors",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::write(&path, file(header, body)).unwrap();
        let contents = super::read(&path);
        std::fs::remove_file(path).unwrap();
        contents
    }

    #[test]
    fn headers_are_read_and_wrong_ones_refused() {
        let good = r#" {"__metadata__": {"format":"pt"}, "a\"b": {"dtype":"U8","shape":[2, 1],"data_offsets":[4,6]}, "s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}} "#;
        let got = read(good, &[1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(got.metadata, [("format".to_owned(), "pt".to_owned())]);
        let first = &got.entries[0];
        assert_eq!((first.name.as_str(), got.bytes(first)), ("a\"b", &[5u8, 6][..]));
        assert_eq!((got.entries[1].ty.to_string().as_str(), got.entries.len()), ("f32[]", 2));
        let refused = |header: &str| read(header, &[0; 4]).err().expect("an error");
        let f32s = |name: &str, shape: &str, place: &str| {
            format!("\"{name}\":{{\"dtype\":\"F32\",\"shape\":{shape},\"data_offsets\":{place}}}")
        };
        let one = |shape: &str, place: &str| refused(&format!("{{{}}}", f32s("x", shape, place)));
        assert!(one("[2]", "[0,4]").contains("4 bytes"));
        assert!(one("[1]", "[4,8]").contains("outside"));
        assert!(one("[1]", "[4,0]").contains("outside"));
        assert!(one("[0]", "[0,0]").contains("4 bytes behind"));
        assert!(one("[0,18446744073709551615]", "[0,0]").contains("more elements"));
        assert!(one("[9223372036854775807,0]", "[0,0]").contains("more elements"));
        assert!(one(&format!("[{}1]", "1,".repeat(64)), "[0,4]").contains("65 dimensions"));
        let twice = |second: &str, place: &str| {
            refused(&format!("{{{},{}}}", f32s("x", "[1]", "[0,4]"), f32s(second, "[1]", place)))
        };
        assert!(twice("y", "[0,4]").contains("does not begin"), "the same bytes twice");
        assert!(refused(&format!("{{{},{}}}", f32s("x", "[1]", "[0,4]"), f32s("x", "[0]", "[4,4]"))).contains("two"));
        assert!(refused(r#"{"x":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}"#).contains("does not begin"));
        assert!(refused(r#"{"x":{"dtype":"F4","shape":[1],"data_offsets":[0,4]}}"#).contains("F4"));
        assert!(refused(r#"{"x":{"dtype":"F32"}}"#).contains("`x`: missing field `shape`"));
        assert!(refused(&format!("{{{}}} x", f32s("x", "[1]", "[0,4]"))).contains("nothing more is expected"));
        assert!(refused("{").contains("and it ends"));
        let with = |more: &str| refused(&format!("{{{}}}", f32s("x", "[1]", "[0,4]").replace('}', more)));
        assert!(with(",\"dtype\":\"F32\"}").contains("`x`: duplicate field `dtype`"));
        assert!(refused(r#"{"__metadata__":{},"__metadata__":{}}"#).contains("metadata twice"));
    }

    #[test]
    fn a_bool_is_0_or_1() {
        let header = r#"{"b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}}"#;
        assert_eq!(read(header, &[0, 1, 1]).unwrap().entries.len(), 1);
        let why = read(header, &[1, 0, 2]).err().expect("an error");
        assert_eq!(why, "`b` is of dtype BOOL, and its byte 2 is 2, not 0 or 1");
        let u8s = r#"{"b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}"#;
        assert!(read(u8s, &[1, 0, 2]).is_ok());
    }

    #[test]
    fn what_only_claims_to_be_large_is_not_read() {
        let path = std::env::temp_dir().join(format!("xlazy-sparse-{}.safetensors", std::process::id()));
        for length in [0u64, 2, LONGEST_HEADER as u64 + 1, u64::MAX] {
            std::fs::write(&path, length.to_le_bytes()).unwrap();
            // Sparse: it takes no room on the disk, and would take 64 GB of memory.
            std::fs::File::options().write(true).open(&path).unwrap().set_len(64 << 30).unwrap();
            assert!(super::read(&path).is_err(), "{length}");
        }
        std::fs::write(&path, [9, 0, 0]).unwrap();
        assert!(super::read(&path).err().expect("an error").contains("too short"));
        std::fs::remove_file(&path).unwrap();
    }

    /// What the format's own library reads in a file: name, dtype, shape and bytes of each tensor, by name.
    type Read = BTreeMap<String, (String, Vec<usize>, Vec<u8>)>;

    fn theirs(file: &[u8]) -> Option<Read> {
        let read = ::safetensors::SafeTensors::deserialize(file).ok()?;
        let one = |(name, t): (String, ::safetensors::tensor::TensorView)| {
            (name, (t.dtype().to_string(), t.shape().to_vec(), t.data().to_vec()))
        };
        Some(read.tensors().into_iter().map(one).collect())
    }

    fn ours(contents: &Contents) -> BTreeMap<String, (String, Vec<usize>, Vec<u8>)> {
        let one = |e: &Entry| {
            (
                e.name.clone(),
                (e.ty.dtype.safetensors().unwrap().to_owned(), e.ty.shape.to_vec(), contents.bytes(e).to_vec()),
            )
        };
        contents.entries.iter().map(one).collect()
    }

    fn view(p: &Part) -> ::safetensors::tensor::TensorView<'_> {
        let dtype = serde_json::from_value(p.ty.dtype.safetensors().into()).unwrap();
        ::safetensors::tensor::TensorView::new(dtype, p.ty.shape.to_vec(), &p.bytes).unwrap()
    }

    /// Tensors of any dtype and up to three dimensions, under names of any text.
    fn parts(below: &mut impl FnMut(usize) -> usize) -> Vec<Part> {
        let words = ["w", "\"", "\\", "é😀", "\n", "\u{1}", "__metadata", "", "/", "\u{2028}"];
        let mut parts: Vec<Part> = Vec::new();
        for n in 0..below(6) {
            let name = format!("{}{}{n}", words[below(words.len())], words[below(words.len())]);
            let shape: Vec<usize> = (0..below(4)).map(|_| below(4)).collect();
            let all: Vec<DType> = DType::ALL.into_iter().filter(|d| d.safetensors().is_some()).collect();
            let ty = Type::new(all[below(all.len())], Shape::new(&shape));
            let bytes = (0..ty.bytes()).map(|_| below(2) as u8).collect();
            parts.push(Part { name, ty, bytes });
        }
        parts
    }

    #[test]
    fn the_formats_own_library_reads_what_is_written_and_writes_what_is_read() {
        let mut below = drawn();
        let path = std::env::temp_dir().join(format!("xlazy-both-{}.safetensors", std::process::id()));
        for _ in 0..100 {
            let parts = parts(&mut below);
            write(&path, None, &[("k\"", "v\n"), ("a", "é")], &parts).unwrap();
            let (bytes, contents) = (std::fs::read(&path).unwrap(), super::read(&path).unwrap());
            assert_eq!(theirs(&bytes).as_ref(), Some(&ours(&contents)));
            assert_eq!(ours(&contents).len(), parts.len());
            assert!(contents.entries.iter().zip(&parts).all(|(e, p)| e.name == p.name), "in the order of the state");
            let (_, header) = ::safetensors::SafeTensors::read_metadata(&bytes).unwrap();
            let metadata: BTreeMap<_, _> = header.metadata().clone().unwrap().into_iter().collect();
            assert_eq!(metadata, contents.metadata.iter().cloned().collect());
            let views = parts.iter().map(|p| (p.name.clone(), view(p)));
            std::fs::write(&path, ::safetensors::serialize(views, None).unwrap()).unwrap();
            assert_eq!(ours(&super::read(&path).unwrap()), ours(&contents));
        }
        std::fs::remove_file(path).unwrap();
    }

    /// Nor does one mean something else than it means to the format's own library.
    #[test]
    fn no_file_ends_the_program_that_reads_it() {
        let mut below = drawn();
        let good = r#"{"__metadata__":{"k":"v\u00e9\ud83d\ude00"},"a":{"dtype":"U8","shape":[2,1],"data_offsets":[4,6]},"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}"#;
        let pieces = [
            "\"",
            "\\",
            "\\u",
            "\\ud83d",
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "0",
            "-1",
            "1e9",
            "18446744073709551616",
            "é",
            "\0",
            "BOOL",
            "C64",
        ];
        let (mut read, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let header = spoilt(good, &pieces, &mut below);
            match entries(&header, 6) {
                Ok((_, all)) => {
                    assert!(all.iter().all(|e| e.place.len() == e.ty.bytes() && e.place.end <= 6));
                    let length = (header.len() as u64).to_le_bytes();
                    let contents = Contents { metadata: vec![], entries: all, body: vec![0; 6] };
                    let file = [&length[..], &header, &contents.body].concat();
                    assert_eq!(theirs(&file), Some(ours(&contents)), "{}", String::from_utf8_lossy(&header));
                    read += 1;
                }
                Err(_) => refused += 1,
            }
        }
        assert!(read > 100 && refused > 1000, "{read} read, {refused} refused");
    }
}
