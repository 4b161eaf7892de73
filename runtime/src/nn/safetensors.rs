//! States in safetensors files: a JSON header with names, dtypes, shapes and places, then the bytes.
use crate::dtype::DType;
use crate::insight::Cause;
use crate::op::Type;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::{Error, Result};
use std::fmt::Write as _;
use std::panic::Location;
use std::path::Path;

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
    let (mut header, mut body) = (String::from("{"), Vec::new());
    for (i, (name, t)) in state.iter().enumerate() {
        let ty = t.ty();
        let start = body.len();
        body.extend(t.bytes(Cause::Read, at)?);
        let dims: Vec<String> = ty.shape.iter().map(usize::to_string).collect();
        let _ = write!(
            header,
            "{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{start},{}]}}",
            if i > 0 { "," } else { "" },
            quoted(name),
            code(ty.dtype),
            dims.join(","),
            body.len()
        );
    }
    header.push('}');
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(body);
    let path = path.as_ref();
    std::fs::write(path, bytes).map_err(|e| Error::Usage { message: format!("cannot write {}: {e}", path.display()) })
}

/// The tensors of a safetensors file, by name, in the order of the file's header.
#[track_caller]
pub fn load(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let path = path.as_ref();
    let failed = |what: String| Error::Usage { message: format!("cannot read {}: {what}", path.display()) };
    let bytes = std::fs::read(path).map_err(|e| failed(e.to_string()))?;
    let entries = entries(&bytes).map_err(failed)?;
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

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[derive(Debug, PartialEq)]
struct Entry<'a> {
    name: String,
    ty: Type,
    bytes: &'a [u8],
}

type Parsed<T> = std::result::Result<T, String>;

fn entries(file: &[u8]) -> Parsed<Vec<Entry<'_>>> {
    let short = || "the file is too short for its header".to_owned();
    let (length, rest) = file.split_first_chunk::<8>().ok_or_else(short)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
    let (header, body) = rest.split_at_checked(length).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| "the header is no UTF-8".to_owned())?;
    let mut json = Json { text: header, at: 0 };
    let mut out = Vec::new();
    json.object(|json, name| {
        if name == "__metadata__" {
            return json.object(|json, _| json.string().map(drop));
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
        out.push(Entry { name, ty, bytes });
        Ok(())
    })?;
    Ok(out)
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
                        let unit = u32::from_str_radix(&digits, 16).map_err(|_| bad())?;
                        out.push(char::from_u32(unit).unwrap_or('\u{fffd}'));
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
        let got = entries(&good).unwrap();
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
