//! What was written, read again, by those who write parts of it anew.
use super::builder::{Emit, Val};
use crate::ty::{DType, Shape, Type};

impl Emit {
    /// Goes on where a text ends: what is written has names that it has not.
    pub fn behind(self, text: &str) -> Emit {
        let numbers = text.split('%').skip(1).filter_map(|rest| leading(rest).parse().ok());
        self.numbered_from(numbers.max().unwrap_or(0))
    }
}

impl Val {
    /// The value of a name, `%5` or `%5#1`.
    pub fn read(name: &str, ty: Type) -> Option<Val> {
        let (id, result) = match name.strip_prefix('%')?.split_once('#') {
            Some((id, result)) => (id, Some(result.parse().ok()?)),
            None => (name.strip_prefix('%')?, None),
        };
        Some(Val::of(id.parse().ok()?, result, ty))
    }
}

/// The type of `tensor<2x3xf32>`; none of what is complex.
pub fn read_type(text: &str) -> Option<Type> {
    let inner = text.trim().strip_prefix("tensor<")?.strip_suffix('>')?;
    let mut parts: Vec<&str> = inner.split('x').collect();
    let element = parts.pop()?;
    let dtype = DType::ALL.into_iter().find(|d| d.mlir() == element)?;
    let sizes: Option<Vec<usize>> = parts.iter().map(|p| p.parse().ok()).collect();
    Some(Type::new(dtype, Shape::new(&sizes?)))
}

/// The numbers behind `name = ` in an operation's attributes: `name = 1 : i64`, `name = array<i64: 1, 2>`, `name = [1, 2]`,
/// `name = dense<[[1, 2], [3, 4]]>`.
pub fn read_numbers(attributes: &str, name: &str) -> Option<Vec<i64>> {
    let (name, is_name) = (format!("{name} = "), |c: char| c.is_ascii_alphanumeric() || c == '_');
    let found = attributes.match_indices(&name).find(|(at, _)| !attributes[..*at].ends_with(is_name));
    let rest = &attributes[found?.0 + name.len()..];
    let listed = ["array<i64:", "dense<", "["].iter().find_map(|open| Some((*open, rest.strip_prefix(open)?)));
    let numbers = match listed {
        Some(("[", rest)) => rest.split(']').next()?,
        Some((_, rest)) => rest.split('>').next()?,
        None => rest.split([',', '}', ' ']).next()?,
    };
    let words = numbers.split([',', ' ', '[', ']']).filter(|w| !w.is_empty());
    words.map(|w| w.parse().ok()).collect()
}

fn leading(text: &str) -> &str {
    text.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_values_and_attributes_are_read_as_they_are_written() {
        let ty = Type::new(DType::F32, Shape::new(&[2, 3]));
        assert_eq!(read_type("tensor<2x3xf32>"), Some(ty.clone()));
        assert_eq!(read_type("tensor<bf16>"), Some(Type::new(DType::BF16, Shape::default())));
        assert_eq!(read_type("tensor<?x3xf32>"), None);
        assert_eq!(read_type("tensor<complex<f32>>"), None, "not read");
        for name in ["%5", "%12#3"] {
            assert_eq!(Val::read(name, ty.clone()).unwrap().to_string(), name);
        }
        assert!(Val::read("%arg0", ty).is_none());
        let attributes = "{first_a = 5 : i64, a = 7 : i64, b = array<i64: -1, 2>, c = dense<[[1, -2], [3, 4]]> : tensor<2x2xi64>, d = [2, 3]}";
        let read = |name| read_numbers(attributes, name).unwrap();
        assert_eq!((read("a"), read("b"), read("c"), read("d")), (vec![7], vec![-1, 2], vec![1, -2, 3, 4], vec![2, 3]));
        assert_eq!(read_numbers(attributes, "f"), None);
    }
}
