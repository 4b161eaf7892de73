//! States in safetensors files: a JSON header with names, dtypes, shapes and places, then the bytes. What a header says of a
//! tensor, and whether its tensors fill a file, is for the format's own library; that a header has an order, in which no name
//! comes twice, and which tensor is wrong, it does not know.
use crate::insight::Cause;
use crate::tensor::Tensor;
use crate::{Error, Result};
use ::safetensors::SafeTensorError;
use ::safetensors::tensor::{Dtype, Metadata as Filled, TensorInfo};
use serde_core::de::value::StrDeserializer;
use serde_core::de::{Deserialize, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};
use serde_core::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::ops::Range;
use std::panic::Location;
use std::path::Path;
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
    if let Some(part) = parts.iter().find(|p| known(p.ty.dtype).is_err()) {
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

/// A dtype as the format has it.
fn known(dtype: DType) -> serde_json::Result<Dtype> {
    let named: StrDeserializer<serde_json::Error> = dtype.safetensors().into_deserializer();
    Dtype::deserialize(named)
}

/// The header for these tensors, in their order.
fn header(metadata: &[(&str, &str)], parts: &[Part]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut write = || {
        let mut to = serde_json::Serializer::new(&mut out);
        let mut header = to.serialize_map(None)?;
        if !metadata.is_empty() {
            header.serialize_entry(METADATA, &metadata.iter().copied().collect::<BTreeMap<_, _>>())?;
        }
        let mut end = 0;
        for part in parts {
            let start = end;
            end += part.bytes.len();
            let (dtype, shape) = (known(part.ty.dtype)?, part.ty.shape.to_vec());
            header.serialize_entry(&part.name, &TensorInfo { dtype, shape, data_offsets: (start, end) })?;
        }
        header.end()
    };
    // Only a writer that fails could end it: what is written is text and numbers.
    let written: serde_json::Result<()> = write();
    debug_assert!(written.is_ok());
    out
}

const METADATA: &str = "__metadata__";

const EXTENSION: &str = "safetensors";

/// The limit of the format's own library.
const LONGEST_HEADER: usize = 100_000_000;

/// The tensors of a safetensors file, by name, in the order of the file's header.
#[track_caller]
pub fn load(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let path = path.as_ref();
    let failed = |what: String| Error::Usage { message: format!("cannot read {}: {what}", path.display()) };
    let contents = match read(path) {
        Ok(contents) => contents,
        Err(what) => {
            // An interrupt is no error of the file.
            xlazy_core::sys::check_interrupt();
            return Err(failed(what));
        }
    };
    let tensor = |e: &Entry| (e.name.clone(), Tensor::of_bytes(contents.bytes(e), e.ty.clone()));
    Ok(contents.entries.iter().map(tensor).collect())
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
    let Header { metadata, mut infos } =
        serde_json::from_slice(header).map_err(|e| format!("its header is not that of a safetensors file: {e}"))?;
    let out = infos.iter().map(|(name, info)| entry(name, info, body)).collect::<Parsed<Vec<Entry>>>()?;
    let mut names: Vec<&str> = out.iter().map(|e| e.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("it has two tensors called `{}`", pair[0]));
    }
    infos.sort_by_key(|(_, info)| info.data_offsets);
    let filled = Filled::new(None, infos).map_err(|e| match e {
        SafeTensorError::InvalidOffset(name) => format!("`{name}` does not begin where the tensor before it ends"),
        e => e.to_string(),
    })?;
    match filled.data_len() {
        all if all == body => Ok((metadata, out)),
        all => Err(format!("it has {} bytes behind its last tensor", body - all)),
    }
}

/// A header as it is written: in its order, with whatever comes twice.
struct Header {
    metadata: Metadata,
    infos: Vec<(String, TensorInfo)>,
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Header, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Header;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object of tensors")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Header, A::Error> {
                let (mut metadata, mut infos) = (None, Vec::new());
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        METADATA if metadata.is_some() => return Err(A::Error::custom("it has metadata twice")),
                        METADATA => metadata = Some(map.next_value::<BTreeMap<String, String>>()?),
                        _ => {
                            let info = map.next_value().map_err(|e| A::Error::custom(format_args!("`{name}`: {e}")))?;
                            infos.push((name, info));
                        }
                    }
                }
                Ok(Header { metadata: metadata.into_iter().flatten().collect(), infos })
            }
        }
        from.deserialize_map(Entries)
    }
}

/// What a header says of one tensor of a body of that many bytes.
fn entry(name: &str, info: &TensorInfo, body: usize) -> Parsed<Entry> {
    let (word, (start, end)) = (info.dtype.to_string(), info.data_offsets);
    let known = DType::ALL.into_iter().find(|d| d.safetensors() == word);
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
    use crate::json::json;

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
        assert!(refused(&format!("{{{}}} x", f32s("x", "[1]", "[0,4]"))).contains("trailing characters"));
        assert!(refused("{").contains("EOF"));
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

    /// The same numbers in every run (xorshift), so that a failure can be repeated.
    fn drawn() -> impl FnMut(usize) -> usize {
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        move |n: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % n as u64) as usize
        }
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
            (e.name.clone(), (e.ty.dtype.safetensors().to_owned(), e.ty.shape.to_vec(), contents.bytes(e).to_vec()))
        };
        contents.entries.iter().map(one).collect()
    }

    fn view(p: &Part) -> ::safetensors::tensor::TensorView<'_> {
        let dtype = serde_json::from_value(json!(p.ty.dtype.safetensors())).unwrap();
        ::safetensors::tensor::TensorView::new(dtype, p.ty.shape.to_vec(), &p.bytes).unwrap()
    }

    /// Tensors of any dtype and up to three dimensions, under names of any text.
    fn parts(below: &mut impl FnMut(usize) -> usize) -> Vec<Part> {
        let words = ["w", "\"", "\\", "é😀", "\n", "\u{1}", "__metadata", "", "/", "\u{2028}"];
        let mut parts: Vec<Part> = Vec::new();
        for n in 0..below(6) {
            let name = format!("{}{}{n}", words[below(words.len())], words[below(words.len())]);
            let shape: Vec<usize> = (0..below(4)).map(|_| below(4)).collect();
            let all: Vec<DType> = DType::ALL.into_iter().filter(|d| known(*d).is_ok()).collect();
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
            let mut header = good.as_bytes().to_vec();
            for _ in 0..1 + below(3) {
                let (at, piece) = (below(header.len()), pieces[below(pieces.len())].as_bytes());
                let end = (at + below(6)).min(header.len());
                header.splice(at..end, piece.iter().copied());
            }
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
