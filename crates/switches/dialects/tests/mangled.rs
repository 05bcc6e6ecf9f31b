//! Texts that went through something: lines lost, doubled, swapped, words exchanged. Whatever is left is read or refused with
//! a line of the text, and what is read can be written and reads back the same.

mod common;

use std::{fs, path::PathBuf};

use common::golden_ports;
use dialects::{Memory, Target, TextFile, read_back, write_full};
use fabric::{IngressFilter, SpanningTree};
use proptest::prelude::*;

/// The golden text of a language, file by file: what it is, its name, and what it says.
fn golden(target: Target) -> Vec<(String, String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let read = |name: String| fs::read_to_string(folder.join(name)).expect("a golden file");
    let mut text = read(format!("{target}.txt"));
    if target.has_lags() {
        text.push_str(&read(format!("lags/{target}.txt")));
    }
    let files = text.split("==== ").skip(1).map(|part| part.split_once('\n').expect("a title"));
    files
        .map(|(title, text)| {
            let (what, name) = title.rsplit_once(": ").expect("a name");
            (what.to_owned(), name.to_owned(), text.to_owned())
        })
        .collect()
}

fn ports(target: Target) -> Vec<String> {
    let mut names = golden_ports(target, 3);
    if target.has_lags() {
        names.push("lag1".to_owned());
    }
    names
}

/// One accident, at places that numbers far beyond the text's length are taken modulo it.
#[derive(Clone, Debug)]
enum Accident {
    Lose(usize),
    Double(usize),
    Swap(usize, usize),
    Exchange(usize, usize, usize),
    Garble(usize, usize, char),
}

fn accident() -> impl Strategy<Value = Accident> {
    let place = 0..100_000_usize;
    prop_oneof![
        place.clone().prop_map(Accident::Lose),
        place.clone().prop_map(Accident::Double),
        (place.clone(), place.clone()).prop_map(|(a, b)| Accident::Swap(a, b)),
        (place.clone(), place.clone(), place.clone()).prop_map(|(a, b, c)| Accident::Exchange(a, b, c)),
        (place.clone(), place, any::<char>()).prop_map(|(a, b, c)| Accident::Garble(a, b, c)),
    ]
}

fn suffer(text: &str, accidents: &[Accident]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for accident in accidents {
        let count = lines.len().max(1);
        match *accident {
            _ if lines.is_empty() => {}
            Accident::Lose(at) => drop(lines.remove(at % count)),
            Accident::Double(at) => lines.push(lines[at % count].clone()),
            Accident::Swap(a, b) => lines.swap(a % count, b % count),
            Accident::Exchange(to, word, from) => {
                let words: Vec<String> = lines[from % count].split_whitespace().map(str::to_owned).collect();
                let mut own: Vec<String> = lines[to % count].split(' ').map(str::to_owned).collect();
                if let (Some(new), false) = (words.get(word % words.len().max(1)), own.is_empty()) {
                    let at = word / 7 % own.len();
                    own[at].clone_from(new);
                    lines[to % count] = own.join(" ");
                }
            }
            Accident::Garble(at, place, sign) => {
                let line = &mut lines[at % count];
                let places: Vec<usize> = line.char_indices().map(|(place, _)| place).collect();
                line.insert(places.get(place % places.len().max(1)).copied().unwrap_or(0), sign);
            }
        }
    }
    lines.join("\n") + "\n"
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mangled_texts_are_read_or_refused(
        which in any::<proptest::sample::Index>(),
        accidents in proptest::collection::vec(accident(), 1..6),
    ) {
        for &target in Target::ALL {
            let files = golden(target);
            let files: Vec<(String, String)> = match target {
                Target::Networkd | Target::Ifupdown2 => {
                    let folder = ["s2/", "switch/"][which.index(2)];
                    let own = files.into_iter().filter(|(what, name, _)| what.starts_with("full") && name.starts_with(folder));
                    // Both full configurations of a plan have the same files; the later ones count.
                    let own = own.map(|(_, name, text)| (name, text));
                    own.collect::<std::collections::BTreeMap<_, _>>().into_iter().collect()
                }
                _ => {
                    let (_, name, text) = &files[which.index(files.len())];
                    vec![(name.clone(), text.clone())]
                }
            };
            let mangled: Vec<(String, String)> =
                files.iter().map(|(name, text)| (name.clone(), suffer(text, &accidents))).collect();
            let texts: Vec<TextFile<'_>> = mangled.iter().map(|(name, text)| TextFile { name, text }).collect();
            match read_back(target, &texts, target.factory(ports(target))) {
                Err(errors) => for error in &errors {
                    let lines = texts.iter().find(|file| file.name == error.file).map_or(1, |file| file.text.lines().count());
                    prop_assert!((1..=lines.max(1)).contains(&error.line), "{} {}", target, error);
                },
                Ok(mut config) => {
                    config.spanning_tree = SpanningTree::Off;
                    config.ports.iter_mut().for_each(|port| port.ingress_filter = IngressFilter::On);
                    let mut memory = Memory::default();
                    if write_full(target, &config, &mut memory).is_ok() {
                        let own: Vec<(String, String)> = (memory.files.iter())
                            .map(|(name, bytes)| (name.clone(), String::from_utf8(bytes.clone()).expect("text")))
                            .collect();
                        let texts: Vec<TextFile<'_>> = own.iter().map(|(name, text)| TextFile { name, text }).collect();
                        let back = read_back(target, &texts, target.factory(ports(target)));
                        prop_assert_eq!(back.as_ref(), Ok(&config), "{}\n{:?}\n{:?}", target, mangled, own);
                    }
                }
            }
        }
    }
}
