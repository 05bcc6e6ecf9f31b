//! Every message of the programs in one file, `messages.txt`, that is reviewed like code: what errors say, what is printed
//! to standard error, and what refusals carry. `BLESS=1 cargo test -p fabric --test messages` rewrites it.
//!
//! ```text
//! #[error("…")]   bad_input("…")   Error::Request("…")   Fault::Refused("…")   eprintln!("…")   ─▶ file, and its messages
//! ```
//! Messages are string literals as they stand in the source, with their placeholders, in the order of the source.

mod common;

use std::{fmt::Write as _, fs, path::Path};

use common::{read, rust_files, workspace_crates};
use proc_macro2::{Delimiter, Literal, TokenStream, TokenTree};

/// Macros whose first literal a person reads.
const MACROS: &[&str] = &["eprintln", "eprint", "println", "say", "anyhow", "bail", "ensure"];
/// Functions and variants whose literals a person reads.
const CALLS: &[&str] =
    &["bad_input", "context", "with_context", "Request", "Unsupported", "Refused", "Missing", "Content", "Message"];

#[test]
fn messages_are_as_reviewed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages.txt");
    let mut text = String::new();
    for (name, folder) in workspace_crates() {
        let source = folder.join("src");
        for file in rust_files(&source) {
            let messages = messages(&read(&file));
            if !messages.is_empty() {
                let shown = file.strip_prefix(&source).expect("a file of the folder").display();
                let _ = writeln!(text, "──── {name}/{shown}");
                messages.iter().for_each(|message| text.extend([message, "\n"]));
                text.push('\n');
            }
        }
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, text).expect("the file can be written");
    } else {
        let reviewed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            text == reviewed,
            "messages differ: BLESS=1 cargo test -p fabric --test messages, and read the difference"
        );
    }
}

#[test]
fn a_message_is_found_wherever_it_stands() {
    let check = |source: &str, expected: &[&str]| assert_eq!(messages(source), expected, "{source}");
    check(r#"#[error("no {0}")] struct E(u8);"#, &["no {0}"]);
    check(r#"fn f() { bad_input(format!("{x}: is no {}", y)) }"#, &["{x}: is no {}"]);
    check(r#"fn f() { Err(Error::Request("a b".to_owned())) }"#, &["a b"]);
    check(r#"fn f() { eprintln!("a {b}", b = "c d"); }"#, &["a {b}"]);
    check("fn f() { bad_input(\"one \\\n   line\") }", &["one line"]);
    // Placeholders alone, names, tests and comments are no messages.
    check(r#"fn f() { eprintln!("{line}"); bad_input(parts.join("; ")) }"#, &[]);
    check(r#"fn f() { bad_input("name"); other("a b"); } // bad_input("a b")"#, &[]);
    check("#[cfg(test)] mod tests { fn f() { bad_input(\"a b\") } }", &[]);
}

/// The messages of a source.
fn messages(source: &str) -> Vec<String> {
    let tokens: TokenStream = source.parse().expect("a file of Rust");
    let mut found = Vec::new();
    collect(tokens, &mut found);
    found.retain(|message| has_words(message));
    found
}

/// Whether there is more to a message than placeholders and signs.
fn has_words(message: &str) -> bool {
    let mut depth = 0;
    message.chars().any(|letter| {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        depth == 0 && letter.is_alphabetic()
    })
}

fn collect(tokens: TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let is = |offset: usize, sign: char| matches!(tokens.get(at + offset), Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
        let group = |offset: usize| match tokens.get(at + offset) {
            Some(TokenTree::Group(group)) => Some(group.stream()),
            _ => None,
        };
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => match group(1).map(|group| group.to_string()) {
                // What follows `#[cfg(test)]`, up to the end of its module, is skipped.
                Some(attribute) if attribute.replace(' ', "") == "cfg(test)" => {
                    let ends = |token: &TokenTree| match token {
                        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                        TokenTree::Punct(punct) => punct.as_char() == ';',
                        _ => false,
                    };
                    at += 2 + tokens[at + 2..].iter().position(ends).unwrap_or(0);
                }
                Some(attribute) if attribute.starts_with("error") => {
                    found.extend(group(1).and_then(|tokens| literals(tokens).into_iter().next()));
                    at += 1;
                }
                _ => {}
            },
            TokenTree::Ident(ident) if MACROS.contains(&ident.to_string().as_str()) && is(1, '!') => {
                found.extend(group(2).and_then(|tokens| literals(tokens).into_iter().next()));
                at += 2;
            }
            TokenTree::Ident(ident) if CALLS.contains(&ident.to_string().as_str()) => {
                if let Some(TokenTree::Group(arguments)) = tokens.get(at + 1) {
                    if arguments.delimiter() == Delimiter::Parenthesis {
                        found.extend(literals(arguments.stream()).into_iter().filter(|text| text.contains(' ')));
                        at += 1;
                    }
                }
            }
            TokenTree::Group(group) => collect(group.stream(), found),
            _ => {}
        }
        at += 1;
    }
}

/// The string literals within, however deep.
fn literals(tokens: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Literal(literal) => found.extend(text_of(&literal)),
            TokenTree::Group(group) => found.extend(literals(group.stream())),
            _ => {}
        }
    }
    found
}

fn text_of(literal: &Literal) -> Option<String> {
    let value: syn::LitStr = syn::parse_str(&literal.to_string()).ok()?;
    Some(value.value().replace('\n', "\\n"))
}
