//! A derive for the tests of `:dep`, without a crate from elsewhere.
use proc_macro::{TokenStream, TokenTree};

fn name_of(input: TokenStream) -> String {
    let words = input.into_iter().filter_map(|t| match t {
        TokenTree::Ident(i) => Some(i.to_string()),
        _ => None,
    });
    words.skip_while(|w| w != "struct" && w != "enum").nth(1).expect("a type")
}

/// Makes another type beside it, as visible as it is.
#[proc_macro_derive(Echo)]
pub fn echo(input: TokenStream) -> TokenStream {
    let public = if input.to_string().contains("pub") { "pub" } else { "" };
    let name = name_of(input);
    let made = format!(
        "#[derive(Debug)] {public} struct {name}Echo(pub u8); impl {name}Echo {{ pub fn of(n: u8) -> Self {{ {name}Echo(n) }} }}"
    );
    made.parse().unwrap()
}

#[proc_macro_derive(Shout)]
pub fn shout(input: TokenStream) -> TokenStream {
    let name = name_of(input);
    format!("impl {name} {{ pub fn shout() -> String {{ \"{}!\".into() }} }}", name.to_uppercase()).parse().unwrap()
}

/// Macros that name their own crate look for it in the package's `Cargo.toml`, and panic where it is not.
#[proc_macro]
pub fn depends_on(input: TokenStream) -> TokenStream {
    let manifest = std::path::Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("Cargo.toml");
    let text = std::fs::read_to_string(manifest).unwrap_or_default();
    assert!(text.contains(&format!("{input} = ")), "`{input}` is not in `Cargo.toml`");
    "true".parse().unwrap()
}
