//! States in safetensors files: a JSON header with names, dtypes, shapes and places, then the bytes.
use crate::insight::Cause;
use crate::json::string;
use crate::tensor::Tensor;
use crate::{Error, Result};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::panic::Location;
use std::path::Path;
use xlazy_core::ty::{DType, Shape, Type};

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
    write(path.as_ref(), &[], &parts)
}

/// One tensor of a file.
pub(crate) struct Part {
    pub name: String,
    pub ty: Type,
    pub bytes: Vec<u8>,
}

/// Writes a file: all of it or nothing, also when the power goes. Nobody ever sees half of it.
pub(crate) fn write(path: &Path, metadata: &[(&str, &str)], parts: &[Part]) -> Result<()> {
    let mut header = String::from("{");
    if !metadata.is_empty() {
        let pairs: Vec<String> = metadata.iter().map(|(k, v)| format!("{}:{}", string(k), string(v))).collect();
        let _ = write!(header, "\"__metadata__\":{{{}}}", pairs.join(","));
    }
    let mut end = 0;
    for part in parts {
        let start = end;
        end += part.bytes.len();
        let dims: Vec<String> = part.ty.shape.iter().map(usize::to_string).collect();
        let _ = write!(
            header,
            "{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{start},{end}]}}",
            if header.len() > 1 { "," } else { "" },
            string(&part.name),
            code(part.ty.dtype),
            dims.join(","),
        );
    }
    header.push('}');
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    let failed = |e: std::io::Error| Error::Usage { message: format!("cannot write {}: {e}", path.display()) };
    if header.len() > LONGEST_HEADER {
        let message = format!("cannot write {}: its header would be longer than any reader takes", path.display());
        return Err(Error::Usage { message });
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(format!(".{}.part", std::process::id()));
    let unfinished = Path::new(&unfinished);
    let written = File::create(unfinished).and_then(|mut file| {
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        parts.iter().try_for_each(|p| file.write_all(&p.bytes))?;
        file.sync_all()?;
        std::fs::rename(unfinished, path)
    });
    if let Err(e) = written {
        let _ = std::fs::remove_file(unfinished);
        return Err(failed(e));
    }
    // The name, too, must be on the disk.
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(folder).and_then(|f| f.sync_all());
    Ok(())
}

/// The limit of the format's own library.
const LONGEST_HEADER: usize = 100_000_000;

/// The tensors of a safetensors file, by name, in the order of the file's header.
#[track_caller]
pub fn load(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let path = path.as_ref();
    let failed = |what: String| Error::Usage { message: format!("cannot read {}: {what}", path.display()) };
    let bytes = std::fs::read(path).map_err(|e| failed(e.to_string()))?;
    let (_, entries) = entries(&bytes).map_err(failed)?;
    Ok(entries.into_iter().map(|e| (e.name, Tensor::of_bytes(e.bytes, e.ty))).collect())
}

const CODES: [(DType, &str); 10] = [
    (DType::Bool, "BOOL"),
    (DType::U8, "U8"),
    (DType::I8, "I8"),
    (DType::I32, "I32"),
    (DType::I64, "I64"),
    (DType::F16, "F16"),
    (DType::BF16, "BF16"),
    (DType::F32, "F32"),
    (DType::F64, "F64"),
    (DType::C64, "C64"),
];

fn code(dtype: DType) -> &'static str {
    CODES.iter().find(|c| c.0 == dtype).map_or("F32", |c| c.1)
}

#[derive(Debug, PartialEq)]
pub(crate) struct Entry<'a> {
    pub name: String,
    pub ty: Type,
    pub bytes: &'a [u8],
}

/// Keys and values that a file carries besides its tensors.
pub(crate) type Metadata = Vec<(String, String)>;

type Parsed<T> = std::result::Result<T, String>;

/// What a file holds; an error says what is wrong with it.
pub(crate) fn entries(file: &[u8]) -> Parsed<(Metadata, Vec<Entry<'_>>)> {
    let short = || "the file is too short for its header".to_owned();
    let (length, rest) = file.split_first_chunk::<8>().ok_or_else(short)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
    let (header, body) = rest.split_at_checked(length).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| "the header is no UTF-8".to_owned())?;
    let mut json = Json { text: header, at: 0 };
    let (mut metadata, mut out, mut last) = (Vec::new(), Vec::new(), 0);
    json.object(|json, name| {
        if name == "__metadata__" {
            return json.object(|json, key| {
                metadata.push((key, json.string()?));
                Ok(())
            });
        }
        let (mut dtype, mut shape, mut place) = (None, None, None);
        json.object(|json, key| {
            match key.as_str() {
                "dtype" => {
                    let word = json.string()?;
                    let known = CODES.iter().find(|c| c.1 == word);
                    dtype = Some(known.ok_or_else(|| format!("`{name}` is of dtype {word}, which xlazy lacks"))?.0);
                }
                "shape" => shape = Some(json.numbers()?),
                "data_offsets" => place = Some(json.numbers()?),
                _ => return Err(format!("`{name}` has an unknown key `{key}`")),
            }
            Ok(())
        })?;
        let (Some(dtype), Some(shape), Some(&[start, end])) = (dtype, shape, place.as_deref()) else {
            return Err(format!("`{name}` lacks dtype, shape or offsets"));
        };
        let bytes = body.get(start..end).ok_or_else(|| format!("`{name}` lies outside the file"))?;
        let ty = Type::new(dtype, Shape::new(&shape));
        let size = shape.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d));
        if size != Some(bytes.len()) {
            return Err(format!("`{name}` has {} bytes, which is not {ty}", bytes.len()));
        }
        last = last.max(end);
        out.push(Entry { name, ty, bytes });
        Ok(())
    })?;
    if last != body.len() {
        return Err(format!("it has {} bytes behind its last tensor", body.len() - last));
    }
    Ok((metadata, out))
}

/// As much JSON as a safetensors header has: objects, strings and lists of whole numbers.
struct Json<'a> {
    text: &'a str,
    at: usize,
}

impl Json<'_> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn expect(&mut self, c: char) -> Parsed<()> {
        match self.peek() {
            Some(found) if found == c => {
                self.at += c.len_utf8();
                Ok(())
            }
            found => Err(format!("the header has {found:?} at byte {} where `{c}` should be", self.at)),
        }
    }

    fn list(&mut self, open: char, close: char, mut item: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        self.expect(open)?;
        while self.peek() != Some(close) {
            item(self)?;
            if self.peek() != Some(close) {
                self.expect(',')?;
            }
        }
        self.expect(close)
    }

    fn object(&mut self, mut entry: impl FnMut(&mut Self, String) -> Parsed<()>) -> Parsed<()> {
        self.list('{', '}', |json| {
            let key = json.string()?;
            json.expect(':')?;
            entry(json, key)
        })
    }

    fn numbers(&mut self) -> Parsed<Vec<usize>> {
        let mut out = Vec::new();
        self.list('[', ']', |json| {
            json.peek();
            let rest = &json.text[json.at..];
            let n = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            out.push(rest[..n].parse().map_err(|_| format!("no number at byte {} of the header", json.at))?);
            json.at += n;
            Ok(())
        })?;
        Ok(out)
    }

    fn string(&mut self) -> Parsed<String> {
        self.expect('"')?;
        let mut out = String::new();
        let mut chars = self.text[self.at..].char_indices();
        let bad = || "a string of the header is broken".to_owned();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += i + 1;
                    return Ok(out);
                }
                '\\' => match chars.next().ok_or_else(bad)?.1 {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    'r' => out.push('\r'),
                    'b' => out.push('\u{8}'),
                    'f' => out.push('\u{c}'),
                    'u' => {
                        let digits: String = chars.by_ref().take(4).map(|c| c.1).collect();
                        let first = u16::from_str_radix(&digits, 16).map_err(|_| bad())?;
                        // Python writes what lies beyond 16 bits as two.
                        let mut units = vec![first];
                        if (0xd800..0xdc00).contains(&first) {
                            let escape: String = chars.by_ref().take(2).map(|c| c.1).collect();
                            if escape != "\\u" {
                                return Err(bad());
                            }
                            let digits: String = chars.by_ref().take(4).map(|c| c.1).collect();
                            units.push(u16::from_str_radix(&digits, 16).map_err(|_| bad())?);
                        }
                        out.push_str(&String::from_utf16(&units).map_err(|_| bad())?);
                    }
                    c => out.push(c),
                },
                c => out.push(c),
            }
        }
        Err(bad())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, body: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), body].concat()
    }

    #[test]
    fn headers_are_read_and_wrong_ones_refused() {
        let good = file(
            r#" {"__metadata__": {"format":"pt"}, "a\"b": {"dtype":"U8","shape":[2, 1],"data_offsets":[1,3]}, "s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}} "#,
            &[1, 2, 3, 4],
        );
        let (metadata, got) = entries(&good).unwrap();
        assert_eq!(metadata, [("format".to_owned(), "pt".to_owned())]);
        assert_eq!((got[0].name.as_str(), got[0].bytes), ("a\"b", &[2u8, 3][..]));
        assert_eq!((got[1].ty.to_string().as_str(), got.len()), ("f32[]", 2));
        let refused = |header: &str| entries(&file(header, &[0; 4])).unwrap_err();
        assert!(refused(r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#).contains("4 bytes"));
        assert!(refused(r#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#).contains("outside"));
        assert!(refused(r#"{"x":{"dtype":"F4","shape":[1],"data_offsets":[0,4]}}"#).contains("F4"));
        assert!(refused(r#"{"x":{"dtype":"F32"}}"#).contains("lacks"));
        assert!(refused("{").contains("should be"));
        assert!(entries(&[9, 0, 0]).is_err() && entries(&[255; 12]).is_err());
    }
}
