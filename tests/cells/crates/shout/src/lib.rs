//! A derive for the tests of `:dep`, without a crate from elsewhere.
use proc_macro::{TokenStream, TokenTree};

#[proc_macro_derive(Shout)]
pub fn shout(input: TokenStream) -> TokenStream {
    let mut words = input.into_iter().filter_map(|t| match t {
        TokenTree::Ident(i) => Some(i.to_string()),
        _ => None,
    });
    let name = words.by_ref().skip_while(|w| w != "struct" && w != "enum").nth(1).expect("a type");
    format!("impl {name} {{ pub fn shout() -> String {{ \"{}!\".into() }} }}", name.to_uppercase()).parse().unwrap()
}
