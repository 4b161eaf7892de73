//! Types that are there once.
use super::{DType, Shape, Type};
use foldhash::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

/// A type of which there is only one in the process, as MLIR keeps its types: copied as a pointer, equal where the pointers
/// are. It stays for good; there are few, since programs on other types are other programs.
#[derive(Clone, Copy)]
pub struct TypeRef(&'static Type);

impl TypeRef {
    /// A tensor without dimensions.
    pub fn scalar(dtype: DType) -> TypeRef {
        static ALL: LazyLock<[TypeRef; DType::ALL.len()]> =
            LazyLock::new(|| DType::ALL.map(|dtype| Type::new(dtype, Shape::default()).into()));
        ALL[dtype as usize]
    }

    pub fn get(self) -> &'static Type {
        self.0
    }
}

impl From<Type> for TypeRef {
    fn from(ty: Type) -> TypeRef {
        static ALL: LazyLock<Mutex<HashSet<&'static Type>>> = LazyLock::new(Mutex::default);
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&ty) {
            return TypeRef(known);
        }
        let new: &'static Type = Box::leak(Box::new(ty));
        all.insert(new);
        TypeRef(new)
    }
}

impl std::ops::Deref for TypeRef {
    type Target = Type;
    fn deref(&self) -> &Type {
        self.0
    }
}

impl PartialEq for TypeRef {
    fn eq(&self, other: &TypeRef) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for TypeRef {}

impl std::fmt::Debug for TypeRef {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::fmt::Display for TypeRef {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
